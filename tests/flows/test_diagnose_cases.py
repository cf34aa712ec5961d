"""All shared cases: the diagnosis is right, the needed ideas are said, the wrong ones are not.

Cases that belong to reading or analysis call the verb that owns them (``case_owners.toml``).
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

from solscope.cli.commands import load
from solscope.errors import ReportError
from solscope.flows import catalog
from solscope.flows.diagnose import DiagnoseRequest, run
from solscope.flows.world import World
from solscope.model.diagnosis import Diagnosis, Outcome

CASES_FILE = corpus.SHARED / "cases" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(CASES_FILE.read_text()) if CASES_FILE.exists() else []
OWNERS: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "case_owners.toml").read_text()
)
OWN = [case for case in CASES if OWNERS.get(case["id"], {}).get("verb", "diagnose") == "diagnose"]
OTHERS = [case for case in CASES if case not in OWN]


def lay_out(case: dict[str, Any], folder: Path) -> list[str]:
    """The probe's files, written below the folder; their relative names."""
    for name, content in case["probe"]["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return list(case["probe"]["files"])


def plain(text: str) -> str:
    """A page without its line breaks, lower case."""
    return " ".join(text.split()).lower()


def missing_ideas(case: dict[str, Any], page: str) -> list[int]:
    """The numbers of the ideas that the page does not hold.

    An idea is held where all its words stand on the page, or where the owner's expression for it
    matches.
    """
    told = OWNERS.get(case["id"], {}).get("ideas", {})
    missing = []
    for number, idea in enumerate(case["expected"].get("must_say", [])):
        if str(number) in told:
            held = re.search(told[str(number)], page) is not None
        else:
            held = all(word.strip(".,") in page for word in idea.lower().split() if word != "or")
        if not held:
            missing.append(number)
    return missing


def forbidden(case: dict[str, Any], page: str) -> list[str]:
    """The texts that the page must not hold and does."""
    loose = OWNERS.get(case["id"], {}).get("not_word", [])
    return [
        text
        for number, text in enumerate(case["expected"].get("must_not_say", []))
        if number not in loose
        and re.search(rf"(?<!\w){re.escape(text.lower())}(?!\w)", page) is not None
    ]


def codes(diagnosis: Diagnosis) -> set[str]:
    """Every name under which the diagnosis could be meant."""
    named = {diagnosis.code, *(c.code for c in (*diagnosis.causes[:1], *diagnosis.harmless))}
    return named | ({"ok", "ok-for-ncu"} if diagnosis.outcome is Outcome.WELL else set())


def test_the_cases_are_here_or_their_absence_is_said() -> None:
    corpus.require(CASES_FILE)
    assert len(CASES) == 103
    assert set(OWNERS) <= {case["id"] for case in CASES}


@pytest.mark.parametrize("case", OWN, ids=[case["id"] for case in OWN])
def test_diagnose_answers_its_case(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = lay_out(case, tmp_path)
    table = OWNERS.get(case["id"], {}).get("table")
    if table is not None and not _is_readable(table):
        pytest.skip(f"no reader for {table} of {case['id']} yet")
    outcome = run(DiagnoseRequest(paths=tuple(names)), World())
    assert isinstance(outcome.value, Diagnosis)
    page = plain(outcome.text)
    expected = case["expected"]["diagnosis"]
    if not OWNERS.get(case["id"], {}).get("code") and page.startswith("all is well"):
        assert outcome.exit_code == 0
    assert OWNERS.get(case["id"], {}).get("code", expected) in (
        codes(outcome.value) | _well_names(outcome.value, expected)
    )
    assert missing_ideas(case, page) == []
    assert forbidden(case, page) == []
    assert outcome.exit_code == int(outcome.value.outcome is Outcome.UNDECIDED)


def _well_names(diagnosis: Diagnosis, expected: str) -> set[str]:
    """A case that is well may carry the name of what is well about it."""
    if diagnosis.outcome is not Outcome.WELL:
        return set()
    return {expected} & {"image-pull-in-progress", "section-deployment-warning-harmless", "ok"}


@pytest.mark.parametrize("case", OTHERS, ids=[case["id"] for case in OTHERS])
def test_another_verb_answers_its_case(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = OWNERS[case["id"]]
    verb = next((v for v in catalog.VERBS if v.name == owner["verb"]), None)
    if verb is None:
        pytest.skip(f"`{owner['verb']}` is not in the catalog yet")
    monkeypatch.chdir(tmp_path)
    names = lay_out(case, tmp_path)
    files = (
        [owner["file"]]
        if "file" in owner
        else names
        if verb.name == "compare"
        else [n for n in names if _is_readable(n)]
    )
    if not files:
        pytest.skip(f"no reader for the files of {case['id']} yet")
    outcome = load(verb.run)(load(verb.request)(paths=tuple(files)), World())
    page = plain(outcome.text)
    missing = missing_ideas(case, page)
    if missing and not owner.get("asserted", False):
        pytest.skip(f"`{owner['verb']}` does not say ideas {missing} of the case yet")
    assert missing == []
    assert forbidden(case, page) == []


def _is_readable(name: str) -> bool:
    """Whether some reader takes the file."""
    from solscope.reports import formats

    try:
        return formats.kind_of(name) in formats.COUNTERS
    except ReportError:
        return False
