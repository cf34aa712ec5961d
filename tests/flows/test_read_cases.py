"""What people met with CSV, reports, timelines and joins: every shared case of parts d and f.

Each case runs the verb that answers it on the case's own files. Its numbers come out, its ideas
are said, and the tempting wrong answer is not.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests import corpus

from solscope.cli.commands import load
from solscope.errors import ReportError
from solscope.flows import catalog
from solscope.flows.world import World

CASES_FILE = corpus.SHARED / "cases" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(CASES_FILE.read_text()) if CASES_FILE.exists() else []
MINE = [case for case in CASES if {"d", "f"} & set(case["tests"])]
IDEAS: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "case_owners.toml").read_text()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a case is answered: the verb, the files that it is given (all, unless told), and the
    expected numbers as the verb's value holds them."""

    verb: str
    files: tuple[str, ...] | None = None
    numbers: Callable[[Any], Mapping[str, Any]] = field(default=lambda value: {})


def _kernel(analysis: Any) -> Mapping[str, Any]:
    totals = analysis.kernels[0].totals
    return {
        "kernels": len(analysis.kernels),
        "duration_ns": totals.duration_ns,
        "Duration_us": None if totals.duration_ns is None else totals.duration_ns / 1e3,
        "dram_read_bytes": totals.dram_read_bytes,
        "dram_bytes": totals.dram_bytes,
        "devices": len({k.totals.device.ordinal for k in analysis.kernels}),
    }


def _both(analysis: Any) -> Mapping[str, Any]:
    times = [kernel.totals.duration_ns for kernel in analysis.kernels]
    return {"duration_ns": times[0], "same_for_both": len(times) == 2 and len(set(times)) == 1}


def _launches(reports: Any) -> Mapping[str, Any]:
    launches = reports[0].launches
    first = launches[0]
    return {
        "metrics": len(first.metrics),
        "rules": len(first.details.rules()),
        "kernel": first.name_full,
        "nvtx": next((around.name for around in first.details.nvtx()), None),
        "row0_a": first.metrics.get("a.sum"),
        "row1_a": launches[-1].metrics.get("a.sum"),
    }


def _summary(reports: Any) -> Mapping[str, Any]:
    (one,) = reports[0].summaries
    mean = one.metric("gpu__time_duration.sum").average
    return {"invocations": one.invocations, "duration_avg_us": mean / 1e3}


def _times(reports: Any) -> Mapping[str, Any]:
    kernels = reports[0].kernel_times()
    return {"kernels": len(kernels), "total_ns": kernels[0].total_ns}


def _joined(joined: Any) -> Mapping[str, Any]:
    (row,) = joined.kernels
    return {"total_ms": row.time.total_ns / 1e6}


def _engaged(analysis: Any) -> Mapping[str, Any]:
    (kernel,) = analysis.kernels
    assert kernel.totals.tensor_engagement == "wgmma"
    assert kernel.totals.flop.tensor is None  # not zero: it was not counted
    return {}


ANSWERS: Mapping[str, Answer] = {
    "init-07": Answer(verb="analyze", numbers=_kernel),
    "metric-02": Answer(verb="analyze", numbers=_kernel),
    "metric-04": Answer(verb="analyze", numbers=_engaged),
    "metric-06": Answer(verb="analyze"),
    "metric-08": Answer(verb="analyze"),
    "env-01": Answer(verb="join", files=("raw.csv", "nsys.csv")),
    "csv-01": Answer(verb="analyze", numbers=_kernel),
    "csv-02": Answer(verb="analyze", numbers=_kernel),
    "csv-04": Answer(verb="analyze", numbers=_both),
    "csv-05": Answer(verb="read", numbers=_launches),
    "csv-06": Answer(verb="analyze", numbers=_kernel),
    "csv-07": Answer(verb="read", numbers=_launches),
    "csv-10": Answer(verb="read", numbers=_launches),
    "csv-12": Answer(verb="read", numbers=_summary),
    "csv-13": Answer(verb="analyze", numbers=_kernel),
    "file-02": Answer(verb="read"),
    "env-04": Answer(verb="compare"),
    "join-01": Answer(verb="read"),
    "join-03": Answer(verb="read", files=("schema.sql",)),
    "join-05": Answer(verb="read", files=("nsys.csv", "api.csv")),
    "join-07": Answer(verb="read", numbers=_times),
    "join-09": Answer(verb="join", numbers=_joined),
    **{
        case: Answer(verb="diagnose")
        for case in (
            "perm-08", "nokern-10", "nokern-11", "conf-06", "conf-08", "hang-05", "metric-01",
            "metric-07", "file-03", "file-05", "k8s-07", "vllm-03", "apprep-03",
        )
    },
}  # fmt: skip


def _lay_out(case: dict[str, Any], wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The probe's files in the current folder; SQL becomes the database that it describes."""
    names = []
    for name, text in case["probe"]["files"].items():
        if wanted is not None and name not in wanted:
            continue
        if name.endswith(".sql"):
            name = "probe.sqlite"
            database = sqlite3.connect(name)
            database.executescript(text)
            database.close()
        elif case["id"] == "join-09" and name == "ncu.csv":
            _refuses(name, text)
            Path(name).write_text(_printed_by_ncu(text))
        else:
            Path(name).write_text(text)
        names.append(name)
    return tuple(names)


def _refuses(name: str, text: str) -> None:
    """A table of somebody's own, whose units no one states, is no report of ncu."""
    Path(name).write_text(text)
    with pytest.raises(ReportError):
        load(_verb("read").run)(load(_verb("read").request)(paths=(name,)), World())


def _printed_by_ncu(text: str) -> str:
    """The probe's row of ncu (name, launches, microseconds) as ncu's own raw page."""
    name, launches, time_us = text.splitlines()[1].split(",")
    rows = "".join(f'"{i}","{name}","{time_us}"\n' for i in range(int(launches)))
    return f'"ID","Kernel Name","gpu__time_duration.sum"\n"","","us"\n{rows}'


def _verb(name: str) -> Any:
    return next(verb for verb in catalog.VERBS if verb.name == name)


def _is_said(case: dict[str, Any], number: int, idea: str, page: str) -> bool:
    told = IDEAS.get(case["id"], {}).get("ideas", {})
    if str(number) in told:
        return re.search(told[str(number)], page) is not None
    return all(word.strip(".,") in page for word in idea.lower().split() if word != "or")


def test_every_case_is_answered() -> None:
    corpus.require(CASES_FILE)
    assert {case["id"] for case in MINE} == set(ANSWERS)


@pytest.mark.parametrize(
    "case", [case for case in MINE if case["id"] in ANSWERS], ids=lambda case: case["id"]
)
def test_the_right_verb_gives_the_right_answer(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ANSWERS[case["id"]]
    verb = _verb(answer.verb)
    request = load(verb.request)(paths=_lay_out(case, answer.files))
    outcome = load(verb.run)(request, World())
    page = " ".join(outcome.text.split()).lower()

    expected = dict(case["expected"].get("value") or {})
    tolerance = expected.pop("tolerance", 1e-9)
    found = answer.numbers(outcome.value)
    for name, value in expected.items():
        assert name in found
        assert found[name] == (
            pytest.approx(value, rel=tolerance)
            if isinstance(value, int | float) and not isinstance(value, bool)
            else value
        )
    loose = IDEAS.get(case["id"], {}).get("not_word", [])
    for number, idea in enumerate(case["expected"].get("must_say", [])):
        assert _is_said(case, number, idea, page), idea
    for number, text in enumerate(case["expected"].get("must_not_say", [])):
        assert number in loose or not re.search(rf"(?<!\w){re.escape(text.lower())}(?!\w)", page)
