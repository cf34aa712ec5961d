"""The one list of what two measurements must share, used by compare, by gates and by history."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from solscope.model.conditions import CONDITIONS, Conditions, matched, matched_sets

KNOWN = Conditions(
    chip="h100_sxm",
    device_ordinal=0,
    tool="Nsight Compute",
    tool_version="2025.1.1",
    clock_control="base",
    sm_clock_hz=1.755e9,
    dram_clock_hz=2.619e9,
    cache_control="all",
    replay_mode="kernel",
    metric_count=120,
    metric_set="0f" * 32,
    kind="kernel",
    grid=(132, 1, 1),
    block=(128, 1, 1),
)
OTHER: dict[str, Any] = {
    "chip": ("chip", "h200_sxm"),
    "device_ordinal": ("device", 1),
    "tool": ("tool", "stopwatch"),
    "tool_version": ("tool version", "2026.1"),
    "clock_control": ("clock control", "none"),
    "sm_clock_hz": ("SM clock", 1.9e9),
    "dram_clock_hz": ("DRAM clock", 2.4e9),
    "cache_control": ("cache control", "none"),
    "replay_mode": ("replay mode", "range"),
    "metric_set": ("set of metrics", "a1" * 32),
    "kind": ("kind of result", "range"),
    "grid": ("launch shape", (64, 1, 1)),
    "block": ("launch shape", (64, 1, 1)),
}


def states(one: Conditions, other: Conditions) -> dict[str, str]:
    return {fact.name: fact.state for fact in matched(one, other)}


def test_every_condition_is_asked_for_once_and_in_order() -> None:
    assert tuple(states(KNOWN, KNOWN)) == CONDITIONS
    assert set(states(KNOWN, KNOWN).values()) == {"same"}


@pytest.mark.parametrize("field", list(OTHER))
def test_one_thing_that_differs_or_is_not_known_is_named_alone(field: str) -> None:
    name, value = OTHER[field]
    for other, state in ((value, "differs"), (None, "unknown")):
        found = states(KNOWN, dataclasses.replace(KNOWN, **{field: other}))
        assert found == {**dict.fromkeys(CONDITIONS, "same"), name: state}


def test_what_neither_side_knows_is_no_agreement() -> None:
    assert set(states(Conditions(), Conditions()).values()) == {"unknown"}


def test_the_shape_is_left_out_where_it_is_part_of_the_change() -> None:
    found = [fact.name for fact in matched(KNOWN, KNOWN, same_problem=True)]
    assert found == [name for name in CONDITIONS if name != "launch shape"]


def test_clocks_of_several_kernels_are_compared_end_by_end() -> None:
    # 1.83 to 1.97 GHz against 1.83 to 1.96: 0.5 % at the fast end. Against 1.83 alone: 7 %.
    clocks = {hz: dataclasses.replace(KNOWN, sm_clock_hz=hz) for hz in (1.83e9, 1.96e9, 1.97e9)}
    slow, fast, faster = clocks.values()

    def sm_clock(a: tuple[Conditions, ...], b: tuple[Conditions, ...]) -> Any:
        return next(fact for fact in matched_sets(a, b) if fact.name == "SM clock")

    assert sm_clock((slow, faster), (slow, fast)).state == "same"
    alone = sm_clock((slow, faster), (slow,))
    assert (alone.state, alone.a, alone.b) == ("differs", "1.830 to 1.970 GHz", "1.830 GHz")


def test_a_kernel_that_does_not_tell_makes_the_side_unknown() -> None:
    silent = dataclasses.replace(KNOWN, sm_clock_hz=None, cache_control=None)
    facts = {fact.name: fact for fact in matched_sets((KNOWN, silent), (KNOWN,))}
    assert facts["cache control"].state == facts["SM clock"].state == "unknown"
    assert facts["cache control"].a is None


def test_several_versions_on_one_side_are_all_named() -> None:
    newer = dataclasses.replace(KNOWN, tool_version="2026.1")
    facts = {fact.name: fact for fact in matched_sets((KNOWN, newer), (KNOWN,))}
    assert facts["tool version"].a == "2025.1.1 and 2026.1"
    assert facts["tool version"].state == "differs"
