"""The page of the docs says what the rules say."""

from __future__ import annotations

from tools import make_diagnosis_page, make_docs

from solscope.capture.diagnosis.knowledge import load
from solscope.capture.diagnosis.stated import MEANINGS, STATED


def test_the_page_is_current_and_names_every_cause() -> None:
    text = (make_docs.REFERENCE / "diagnoses.md").read_text(encoding="utf-8")
    assert text == make_diagnosis_page.current(), "run make docs"
    for code in load().causes:
        assert f"`{code}`" in text


def test_meanings_are_given_for_facts_that_exist() -> None:
    assert set(MEANINGS) <= set(STATED)
