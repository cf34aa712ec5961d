"""Comparisons: what pairs, what may be compared, what is said of the rest."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from solscope.analysis.comparison import compare, match
from solscope.model.comparison import ComparedKernel, ComparedReport
from solscope.model.controls import controls
from solscope.model.report import Session
from solscope.render import compare as page

SCHEMA = json.loads(
    (files("solscope.render") / "schemas" / "compare-1.schema.json").read_text("utf-8")
)
REPORT = ComparedReport(
    path="a.ncu-rep",
    sha256="0" * 64,
    tool="Nsight Compute",
    tool_version="2025.1.0",
    clock_control="base",
    cache_control="all",
    replay_mode="kernel",
)


def a_kernel(name: str = "gemm", *, us: float = 100.0, **changed: Any) -> ComparedKernel:
    report = {k: changed.pop(k) for k in list(changed) if k in ComparedReport.__slots__}
    more = changed.pop("quantities", {})
    kernel = ComparedKernel(
        report=dataclasses.replace(REPORT, **report),
        name=name,
        name_full=f"{name}(int)",
        kind="kernel",
        chip="h100_sxm",
        device="NVIDIA H100",
        device_ordinal=0,
        grid=(132, 1, 1),
        block=(128, 1, 1),
        launches=2,
        sm_clock_hz=1.5e9,
        dram_clock_hz=2.6e9,
        metric_count=3,
        metric_set="abc",
        bound="dram",
        quantities={"duration_ns": us * 1e3, "sm_busy_pct": 40.0, **more},
    )
    return dataclasses.replace(kernel, **changed)


def change(found: Any, quantity: str) -> Any:
    (one,) = [c for c in found.pairs[0].changes if c.quantity == quantity]
    return one


def test_half_the_time_is_a_ratio_of_one_half() -> None:
    found = compare([a_kernel(us=100)], [a_kernel(us=50)])
    assert not found.is_draft
    assert change(found, "duration_ns").ratio == 0.5
    assert change(found, "duration_ns").difference == -50_000
    assert "x0.5 (-50.0 %)" in page.table(found, width=100, top=None)


def test_percentages_differ_in_points_and_have_no_ratio() -> None:
    found = compare([a_kernel()], [a_kernel(quantities={"sm_busy_pct": 60.0})])
    assert change(found, "sm_busy_pct").ratio is None
    assert change(found, "sm_busy_pct").difference == 20.0
    assert "+20.00 points" in page.table(found, width=100, top=None)


@pytest.mark.parametrize(
    ("unlike", "name"),
    [
        ({"chip": "h200"}, "chip"),
        ({"device_ordinal": 1}, "device"),
        ({"tool": "cuda-graph"}, "tool"),
        ({"tool_version": "2026.1.0"}, "tool version"),
        ({"clock_control": "none"}, "clock control"),
        ({"sm_clock_hz": 1.6e9}, "SM clock"),
        ({"dram_clock_hz": 2.5e9}, "DRAM clock"),
        ({"cache_control": "none"}, "cache control"),
        ({"replay_mode": "application"}, "replay mode"),
        ({"metric_set": "xyz"}, "set of metrics"),
        ({"grid": (64, 1, 1)}, "launch shape"),
        ({"block": (256, 1, 1)}, "launch shape"),
    ],
)
def test_one_condition_that_differs_forbids_every_difference(
    unlike: dict[str, Any], name: str
) -> None:
    found = compare([a_kernel()], [a_kernel(us=50, **unlike)])
    (pair,) = found.pairs
    assert [fact.name for fact in pair.context if fact.state == "differs"] == [name]
    assert found.is_draft
    assert not pair.is_comparable
    assert all(c.ratio is None and c.difference is None for c in pair.changes)
    text = page.table(found, width=100, top=None)
    assert f"{name} differs" in text
    assert "x0.5" not in text


def test_a_clock_within_two_percent_is_the_same_clock() -> None:
    found = compare([a_kernel()], [a_kernel(sm_clock_hz=1.525e9)])
    assert not found.is_draft


def test_what_is_not_known_makes_a_draft_and_is_named() -> None:
    found = compare([a_kernel(cache_control=None)], [a_kernel(us=50)])
    assert found.is_draft
    assert found.pairs[0].is_comparable
    assert "not known: cache control of a" in page.table(found, width=100, top=None)


def test_the_same_problem_may_be_launched_in_another_shape() -> None:
    found = compare([a_kernel()], [a_kernel(grid=(64, 1, 1))], same_problem=True)
    assert not found.is_draft


def test_what_one_side_did_not_measure_is_absent_with_its_reason() -> None:
    a = a_kernel(absences={"dram_bytes": "no DRAM metric was collected"})
    found = compare([a], [a_kernel(quantities={"dram_bytes": 5.0})])
    told = change(found, "dram_bytes")
    assert (told.a, told.b, told.ratio, told.difference) == (None, 5.0, None, None)
    assert told.why_not == "not measured in a: no DRAM metric was collected"


def test_speeds_of_light_under_other_ceilings_are_not_subtracted() -> None:
    sol = {"speed_of_light_profiled": 0.5}
    a = a_kernel(quantities=sol, ceilings={"speed_of_light_profiled": "dram"})
    b = a_kernel(quantities=sol, ceilings={"speed_of_light_profiled": "tensor"})
    told = change(compare([a], [b]), "speed_of_light_profiled")
    assert told.difference is None
    assert told.why_not == "another ceiling binds: dram in a, tensor in b"


def test_from_zero_there_is_a_difference_and_no_ratio() -> None:
    a, b = (a_kernel(quantities={"dram_bytes": n}) for n in (0.0, 8e6))
    told = change(compare([a], [b]), "dram_bytes")
    assert (told.ratio, told.difference) == (None, 8e6)
    assert "from 0 by 8.00 MB" in page.table(compare([a], [b]), width=100, top=None)


def test_the_strictest_agreement_pairs_first() -> None:
    small, large = a_kernel(grid=(1, 1, 1)), a_kernel(grid=(9, 1, 1))
    pairs, rest_a, rest_b = match([small, large], [large, small])
    assert {(a.grid, b.grid) for a, b, _ in pairs} == {
        ((1, 1, 1), (1, 1, 1)),
        ((9, 1, 1), (9, 1, 1)),
    }
    assert rest_a == rest_b == []


def test_one_of_several_shapes_is_not_guessed() -> None:
    shapes = [a_kernel(grid=(n, 1, 1)) for n in (1, 2)]
    pairs, rest_a, rest_b = match(shapes, [a_kernel(grid=(3, 1, 1))])
    assert pairs == []
    assert len(rest_a) == 2
    assert len(rest_b) == 1


def test_a_kernel_of_one_side_is_listed() -> None:
    found = compare([a_kernel(), a_kernel("old")], [a_kernel(), a_kernel("new")])
    assert [k.name for k in found.only_in_a] == ["old"]
    assert [k.name for k in found.only_in_b] == ["new"]
    text = page.table(found, width=100, top=None)
    assert "only in a: 1\n  old" in text
    assert "only in b: 1\n  new" in text


def test_other_names_pair_when_asked_the_longest_first() -> None:
    old = [a_kernel("v2", us=us, grid=(int(us), 1, 1)) for us in (5, 600)]
    found = compare(old, [a_kernel("v5", us=200)], given=[("v2", "v5")])
    (pair,) = found.pairs
    assert pair.matched_by == "given"
    assert pair.a.quantities["duration_ns"] == 600_000
    assert len(found.only_in_a) == 1


def test_the_only_kernels_of_two_reports_are_a_pair() -> None:
    found = compare([a_kernel("v2")], [a_kernel("v5")])
    assert found.pairs[0].matched_by == "only kernels"
    assert "v2 → v5" in page.table(found, width=100, top=None)


def test_launches_that_overlap_in_time_are_within_their_scatter() -> None:
    a = a_kernel(duration_range_ns=(90.0, 110.0))
    near, far = (a_kernel(duration_range_ns=r) for r in ((105.0, 120.0), (111.0, 120.0)))
    assert "scatter" in compare([a], [near]).pairs[0].notes[0]
    assert compare([a], [far]).pairs[0].notes == ()


def test_sampled_and_counted_stalls_are_not_subtracted() -> None:
    stalls = {"long_scoreboard": 0.6}
    a = a_kernel(stalls=stalls)
    alike = compare([a], [a_kernel(stalls={"long_scoreboard": 0.4})]).pairs[0].stalls[0]
    assert alike.difference == pytest.approx(-0.2)
    unlike = compare([a], [a_kernel(stalls=stalls, stalls_are_sampled=True)]).pairs[0].stalls[0]
    assert unlike.difference is None


def test_a_cut_report_is_said() -> None:
    found = compare([a_kernel()], [a_kernel(complete=False)])
    assert any("cut" in note for note in found.pairs[0].notes)


def test_no_pair_at_all_is_a_draft() -> None:
    found = compare([a_kernel("x"), a_kernel("y")], [a_kernel("z")])
    assert found.is_draft
    assert "no kernel is on both sides" in page.table(found, width=100, top=None)


@pytest.mark.parametrize(
    "b", [a_kernel(us=50), a_kernel("other"), a_kernel(sm_clock_hz=None, grid=None)]
)
def test_the_json_is_valid_by_the_shipped_schema(b: ComparedKernel) -> None:
    found = compare([a_kernel(stalls={"wait": 0.5})], [b, a_kernel("new", stalls={"wait": 0.1})])
    document = json.loads(page.as_json(found))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_markdown_escapes_names_and_holds_the_table() -> None:
    found = compare([a_kernel("<b>|")], [a_kernel("<b>|", us=50)])
    text = page.markdown(found, top=None)
    assert "| time | 100 µs | 50.0 µs | x0.5 (-50.0 %) |" in text
    assert "<b>" not in text.replace("\\<b", "")


def test_controls_come_from_the_record_then_the_command_then_the_defaults() -> None:
    said = controls(
        Session(profiler_command_line="ncu --cache-control none -c 1 --clock-control=none app")
    )
    assert (said.clock, said.cache, said.replay) == ("none", "none", "kernel")
    assert controls(Session()).clock is None
    recorded = Session(clock_control="boost", profiler_command_line="ncu app")
    assert controls(recorded).clock == "boost"
    after = Session(profiler_command_line="ncu -o x -- app --cache-control none")
    assert controls(after).cache == "all"
    assert controls(Session(profiler_command_line="ncu 'app")).replay == "kernel"
