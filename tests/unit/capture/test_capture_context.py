"""What a capture states of its context, and what it leaves open."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from solscope.errors import CaptureError
from solscope.flows.capture import context
from solscope.model.evidence import MeasurementContext
from solscope.model.plan import Window


@pytest.mark.parametrize("window", list(Window))
def test_only_a_window_that_opens_after_the_warm_up_is_called_warm(window: Window) -> None:
    is_warm = window is Window.ENGINE_PROFILER
    assert context._regime(window) == ("warm" if is_warm else None)


def test_a_stated_context_that_cannot_be_read_is_named_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "_of", lambda *_: MeasurementContext())
    path = tmp_path / "context.yaml"
    path.write_text("model: [m\n")
    made: Any = SimpleNamespace(journal=SimpleNamespace(bundle=SimpleNamespace(folder=tmp_path)))
    with pytest.raises(CaptureError, match="cannot be read") as caught:
        context.write(made, [])
    assert caught.value.where == str(path)
    assert "--resume" in str(caught.value.hint)
    assert path.read_text() == "model: [m\n"
