"""The page of the docs says what the rules say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from solscope.capture.diagnosis.knowledge import load

ROOT = Path(__file__).resolve().parents[2]


def _tool() -> ModuleType:
    path = ROOT / "tools" / "make_diagnosis_page.py"
    spec = importlib.util.spec_from_file_location("make_diagnosis_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current_and_names_every_cause() -> None:
    tool = _tool()
    text = tool.PAGE.read_text(encoding="utf-8")
    assert text == tool.page(load()), "run python tools/make_diagnosis_page.py"
    for code in load().causes:
        assert f"`{code}`" in text
