"""`solscope budget`: files in, pages and exit codes out."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.timelines import host_event, kernel_event, kernel_row, write_export, write_trace

from solscope.errors import ReportError, UsageError
from solscope.flows.budget import BudgetRequest, run
from solscope.flows.world import Outcome, World


def ask(*paths: Path, **options: Any) -> Outcome:
    return run(BudgetRequest(paths=tuple(map(str, paths)), **options), World())


def a_trace(folder: Path, busy_us: float) -> Path:
    events = []
    for begin in range(0, 700, 100):
        events.append(kernel_event("gemm", begin, busy_us))
        events.append(host_event("user_annotation", "decode_step", begin, 5))
    return write_trace(folder / "t.json", events, cuda_runtime_version=13000)


def test_a_host_bound_step_says_what_its_gap_costs(tmp_path: Path) -> None:
    outcome = ask(a_trace(tmp_path, 20))
    assert outcome.exit_code == 0
    assert outcome.text.splitlines()[0] == "t.json, device 0: host-bound"
    assert "6 steps by decode (host); 100 µs a step, 1 kernels a step" in outcome.text
    assert "without it a step would be at most 5.00x faster" in outcome.text
    assert "gate failed" not in outcome.text


def test_json_states_its_schema_and_nanoseconds(tmp_path: Path) -> None:
    document = json.loads(ask(a_trace(tmp_path, 20), format="json").text)
    assert document["schema"] == "solscope.budget/1"
    (device,) = document["devices"]
    assert device["per_step"]["host_gap_ns"] == 80_000
    assert device["shares_of_wall"]["busy"] == 0.2
    assert device["steps"] == {
        "source": "annotation",
        "label": "decode (host)",
        "used": 6,
        "left_out": 0,
    }
    assert all(gate["remedy"] is None for gate in device["gates"] if gate["passed"])


def test_collectives_are_known_by_the_packaged_patterns(tmp_path: Path) -> None:
    rows = [kernel_row(b, b + 80, 1) for b in range(0, 700, 100)]
    more = "CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT);" + "".join(
        f"INSERT INTO NVTX_EVENTS VALUES ({b}, {b + 5}, 'step {b}');" for b in range(0, 700, 100)
    )
    outcome = ask(write_export(tmp_path / "a.sqlite", rows, more=more), step="^step")
    assert outcome.text.startswith("a.sqlite, device 0: comm-bound")


def test_sums_alone_give_no_budget_and_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "sum.csv"
    path.write_text("Total Time (ns),Instances,Name\n10,1,k\n")
    outcome = ask(path)
    assert (outcome.exit_code, outcome.text.splitlines()[0]) == (1, "sum.csv: no budget")


def test_an_undetermined_device_is_exit_code_1(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel_event("k", 0, 1), kernel_event("k", 900, 1)])
    outcome = ask(path)
    assert outcome.exit_code == 1
    assert "undetermined" in outcome.text
    assert "next: name the steps with --step REGEX" in outcome.text


def test_a_step_regex_that_matches_nothing_lists_annotations(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no annotation matches --step 'nope'") as caught:
        ask(a_trace(tmp_path, 20), step="nope")
    assert "'decode_step'" in str(caught.value)
    with pytest.raises(UsageError, match="not a regular expression"):
        ask(a_trace(tmp_path, 20), step="(")


def test_shares_of_a_sampler_are_no_timeline(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("kernel,share\nk,0.5\n")
    with pytest.raises(ReportError, match="kernel-samples, which holds no timeline"):
        ask(path)


def test_the_json_is_as_its_schema_says(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    text = files("solscope.render").joinpath("schemas", "budget-1.schema.json").read_text()
    document = json.loads(ask(a_trace(tmp_path, 20), format="json").text)
    checker = jsonschema.Draft202012Validator(json.loads(text))
    assert [error.message for error in checker.iter_errors(document)] == []


def test_what_a_reader_left_out_is_said_beside_the_budget(tmp_path: Path) -> None:
    path = a_trace(tmp_path, 20)
    document = json.loads(path.read_text())
    document["traceEvents"].append(kernel_event("gemm", 50, -1))
    path.write_text(json.dumps(document))
    outcome = ask(path)
    assert "warning: t.json: 1 events have no usable begin or duration; left out" in outcome.text
    (report,) = json.loads(ask(path, format="json").text)["reports"]
    assert [issue["code"] for issue in report["issues"]] == ["rows-without-duration"]
