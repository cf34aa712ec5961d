"""All shared cases: the diagnosis is right, the needed ideas are said, the wrong ones are not.

Cases that belong to reading or analysis call the verb that owns them (``case_owners.toml``).
"""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests import corpus

from solscope.cli.commands import load
from solscope.flows import catalog
from solscope.flows.world import Outcome as Answer
from solscope.flows.world import World
from solscope.model.diagnosis import Cause, Check, Diagnosis, LogFact, Outcome, UnknownLine
from solscope.render import diagnosis as pages
from solscope.reports import formats

CASES_FILE = corpus.SHARED / "cases" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(CASES_FILE.read_text()) if CASES_FILE.exists() else []
OWNERS: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "case_owners.toml").read_text()
)
SCHEMA = json.loads(
    (files("solscope.render") / "schemas" / "diagnosis-1.schema.json").read_text("utf-8")
)
WELL_NAMES = {"image-pull-in-progress", "section-deployment-warning-harmless", "ok"}


def lay_out(case: dict[str, Any], folder: Path) -> list[str]:
    """The probe's files, written below the folder; their relative names."""
    names = []
    for name, content in case["probe"]["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        names.append(AS_WRITTEN[case["id"]](path) if case["id"] in AS_WRITTEN else name)
    return names


def as_database(path: Path) -> str:
    """The SQL of a probe, run: nsys exports a database, not its schema."""
    target = path.with_suffix(".sqlite")
    with sqlite3.connect(target) as database:
        database.executescript(path.read_text())
    database.close()
    return target.name


def as_ncu_prints(path: Path) -> str:
    """The probe's summary (kernel, launches, µs a launch) as the rows that ncu's raw page has."""
    if path.name == "ncu.csv":
        name, launches, us = path.read_text().splitlines()[1].split(",")
        head = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","us"\n'
        rows = [f'"{number}","{name}","{us}"\n' for number in range(int(launches))]
        path.write_text(head + "".join(rows))
    return path.name


AS_WRITTEN: dict[str, Callable[[Path], str]] = {"join-03": as_database, "join-09": as_ncu_prints}


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
    """The texts and meanings that the page must not hold and does."""
    texts = [
        rf"(?<!\w){re.escape(text.lower())}(?!\w)"
        for text in case["expected"].get("must_not_say", [])
    ]
    never = OWNERS.get(case["id"], {}).get("never", [])
    return [pattern for pattern in (*texts, *never) if re.search(pattern, page) is not None]


def is_right(case: dict[str, Any], answer: Answer, page: str) -> bool:
    """Whether the answer comes to the diagnosis that the case expects."""
    owner, expected = OWNERS.get(case["id"], {}), case["expected"]["diagnosis"]
    if isinstance(answer.value, Diagnosis):
        assert answer.exit_code == int(answer.value.outcome is Outcome.UNDECIDED)
        return owner.get("code", expected) in names_of(answer.value, expected)
    if expected == "ok":
        assert answer.exit_code == 0
        assert "error" not in page
    else:
        assert owner["told"]
    return all(re.search(pattern, page) is not None for pattern in owner.get("told", ()))


def names_of(diagnosis: Diagnosis, expected: str) -> set[str]:
    """Every name under which the diagnosis could be meant."""
    named = {diagnosis.code, *(c.code for c in (*diagnosis.causes[:1], *diagnosis.harmless))}
    if diagnosis.outcome is Outcome.WELL:
        named |= {"ok", "ok-for-ncu"} | {expected} & WELL_NAMES
    return named


VALUES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "init-07": lambda _: {
        "Duration_us": _first("out.csv").metrics["gpu__time_duration.sum"] / 1e3  # type: ignore[operator]
    },
    "metric-02": lambda a: {"dram_bytes": a.kernels[0].totals.dram_bytes},
    "csv-01": lambda a: {
        "kernels": len(a.kernels),
        "duration_ns": a.kernels[0].totals.duration_ns,
        "dram_read_bytes": a.kernels[0].totals.dram_read_bytes,
    },
    "csv-02": lambda a: {
        "duration_ns": a.kernels[0].totals.duration_ns,
        "dram_read_bytes": a.kernels[0].totals.dram_read_bytes,
    },
    "csv-04": lambda a: {
        "duration_ns": a.kernels[0].totals.duration_ns,
        "same_for_both": len({k.totals.duration_ns for k in a.kernels}) == 1
        and len(a.kernels) == 2,
    },
    "csv-05": lambda a: {
        "metrics": len(list(a.reports[0].launches[0].metrics)),
        "rules": len(a.reports[0].launches[0].details.rules()),
    },
    "csv-06": lambda a: {"kernels": len(a.kernels)},
    "csv-07": lambda a: {
        "kernel": a.kernels[0].totals.name,
        "nvtx": a.reports[0].launches[0].details.nvtx()[0].name,
    },
    "csv-10": lambda a: {
        f"row{i}_a": launch.metrics.get("a.sum") for i, launch in enumerate(a.reports[0].launches)
    },
    "csv-12": lambda found: {
        "invocations": found[0].summaries[0].invocations,
        "duration_avg_us": found[0].summaries[0].metric("gpu__time_duration.sum").average / 1e3,
    },
    "csv-13": lambda a: {"devices": len({k.totals.device.ordinal for k in a.kernels})},
    "read-08": lambda d: {"embed_bytes_approx": _field(d, "lookup-table", "bytes")},
    "peak-01": lambda d: {"pct_of_peak": _field(d, "figure-within-peak", "pct")},
    "peak-04": lambda a: {
        "implied_peak_TBps": float(
            re.findall(r"its peak is ([\d.]+) TB/s", " ".join(a.kernels[0].verdict.grounds))[0]
        )
    },
    "join-07": lambda found: {
        "kernels": len(found[0].sums),
        "total_ns": found[0].sums[0].total_ns,
    },
    "join-09": lambda j: {"total_ms": j.kernels[0].time.total_ns / 1e6},
    "vllm-06": lambda d: {"invalid": len(d.causes)},
}


def _first(path: str) -> Any:
    report: Any = formats.read(path)
    return report.launches[0]


def _field(diagnosis: Diagnosis, code: str, name: str) -> float:
    (fact,) = (f for cause in diagnosis.causes for f in cause.evidence if f.code == code)
    return float(fact.fields[name])


def wrong_values(case: dict[str, Any], value: Any) -> dict[str, tuple[Any, Any]]:
    """Name -> (expected, found) of each number that is not as the case states it."""
    expected = dict(case["expected"].get("value", {}))
    tolerance = expected.pop("tolerance", 1e-6)
    found = VALUES[case["id"]](value) if expected else {}
    return {
        name: (wanted, found[name])
        for name, wanted in expected.items()
        if found[name] != wanted and found[name] != pytest.approx(wanted, rel=tolerance)
    }


def test_the_cases_are_here_or_their_absence_is_said() -> None:
    corpus.require(CASES_FILE)
    assert len(CASES) == 103
    assert set(OWNERS) <= {case["id"] for case in CASES}
    assert set(VALUES) == {case["id"] for case in CASES if "value" in case["expected"]}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_case_is_answered(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = lay_out(case, tmp_path)
    owner = OWNERS.get(case["id"], {})
    verb = next(v for v in catalog.VERBS if v.name == owner.get("verb", "diagnose"))
    given = (owner["file"],) if "file" in owner else tuple(names)
    answer = load(verb.run)(load(verb.request)(paths=given), World())
    page = plain(answer.text)
    assert is_right(case, answer, page), page
    assert missing_ideas(case, page) == []
    assert forbidden(case, page) == []
    assert wrong_values(case, answer.value) == {}
    if isinstance(answer.value, Diagnosis):
        document = json.loads(pages.as_json(answer.value))
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_the_schema_demands_every_key_that_is_written() -> None:
    parts = {"": Diagnosis, "cause": Cause, "fact": LogFact, "check": Check, "unknown": UnknownLine}
    for name, noun in parts.items():
        part = SCHEMA["$defs"][name] if name else SCHEMA
        written = {field.name for field in dataclasses.fields(noun)}
        assert set(part["required"]) == set(part["properties"])
        assert set(part["properties"]) - {"schema"} == written


def test_a_forbidden_text_is_found_in_whatever_case_has_one() -> None:
    """The guard itself: each forbidden text, said, is noticed."""
    for case in CASES:
        for text in case["expected"].get("must_not_say", []):
            assert forbidden(case, plain(f"It may be so: {text}. Or not.")) != []
