"""What a capture states of its context, and what it leaves open."""

from __future__ import annotations

import pytest

from solscope.flows.capture import context
from solscope.model.plan import Window


@pytest.mark.parametrize("window", list(Window))
def test_only_a_window_that_opens_after_the_warm_up_is_called_warm(window: Window) -> None:
    is_warm = window is Window.ENGINE_PROFILER
    assert context._regime(window) == ("warm" if is_warm else None)
