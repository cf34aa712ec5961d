"""The lake is an extra: who has not installed it is told so by each verb that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from solscope.cli import commands


@pytest.mark.parametrize("missing", ["deltalake", "duckdb"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "--named", "worst-kernels", "--lake", "lake"],
        ["query", "select 1", "--lake", "lake"],
        ["next", "--lake", "lake"],
    ],
)
def test_a_verb_that_needs_the_lake_says_how_to_install_it(
    arguments: list[str],
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == missing else found(name)
    )
    monkeypatch.chdir(tmp_path)
    assert commands.call(arguments) == 6
    said = capsys.readouterr().err
    assert f"the lake needs {missing}" in said
    assert "pip install 'solscope[lake]'" in said
