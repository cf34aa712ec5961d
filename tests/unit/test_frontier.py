"""Levers: the most they can win is share times what is lacking to the speed of light."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.analyses import a_kernel
from tests.campaigns import a_busy_kernel, a_campaign, a_cell, a_fma_kernel, a_tensor_kernel

from solscope.analysis import frontier
from solscope.model.campaign import COSTS, FindingStatus, ValueFinding


def a_finding(**changes: Any) -> ValueFinding:
    values: dict[str, Any] = {
        "id": "graphs",
        "title": "CUDA graphs are off",
        "status": FindingStatus.NOT_DONE,
        "next_lever": "turn CUDA graphs on",
        "max_win": 0.2,
        "cost": "setting",
        "gate": "TPOT, n = 5",
    }
    values.update(changes)
    return ValueFinding(**values)


def test_a_win_is_share_times_the_rest_to_the_roof() -> None:
    # 400 of 640 µs is 62.5 %; at 42.16 % of FP32 57.84 % is lacking: 36.15 %.
    levers = frontier.rank(a_campaign(a_cell(a_tensor_kernel(), a_fma_kernel()))).open
    (fma,) = [lever for lever in levers if "warp_decode" in lever.what]
    assert fma.max_win == pytest.approx(0.625 * (1 - 25 / 59.3), abs=1e-6)
    assert fma.basis == "the profiled kernel time"
    assert fma.confidence == "counted"
    assert fma.cost == "kernel"
    assert fma.score == pytest.approx((fma.max_win or 0) / COSTS["kernel"])


def test_a_collective_can_win_all_of_its_time_and_stands_at_no_roof() -> None:
    # Half of the time, at 32 % of DRAM: what it waits for is its peers, and compute can hide it.
    peers = a_kernel("all_reduce", us=100, bound="peers", rates={"dram": 0.32 * 3.352e12})
    levers = frontier.rank(a_campaign(a_cell(peers, a_fma_kernel(us=100)))).open
    (lever,) = [lever for lever in levers if "all_reduce" in lever.what]
    assert (lever.max_win, lever.confidence) == (pytest.approx(0.5), "times")
    unmeasured = a_kernel("all_reduce", us=100, bound="peers")
    (alone,) = frontier.rank(a_campaign(a_cell(unmeasured))).open
    assert alone.max_win == 1.0


def test_the_end_to_end_share_scales_the_win_and_names_its_basis() -> None:
    cell = a_cell(a_fma_kernel())
    whole = frontier.rank(a_campaign(cell)).open[0]
    part = frontier.rank(a_campaign(cell, end_to_end_share=0.5)).open[0]
    assert part.max_win == pytest.approx((whole.max_win or 0) / 2)
    assert part.basis == "end-to-end time"


def test_a_kernel_whose_work_was_not_counted_is_to_be_measured_first() -> None:
    (lever,) = frontier.rank(a_campaign(a_cell(a_busy_kernel()))).open
    assert lever.max_win is None
    assert lever.score is None
    assert lever.share == 1.0
    assert lever.what.startswith("count FLOP and DRAM bytes of sm100_fp8_fp4_gemm_1d1d")
    assert lever.confidence == "percentages"
    assert lever.kernel is None


def test_one_capture_counts_the_work_of_all_kernels_of_a_cell() -> None:
    busy = [a_busy_kernel(name=f"k{i}") for i in range(5)]
    (lever,) = frontier.rank(a_campaign(a_cell(*busy), end_to_end_share=0.5)).open
    assert "k0, k1, k2 and 2 more" in lever.what
    assert lever.share == pytest.approx(0.5)


def test_a_launch_that_is_too_small_needs_no_counting_to_be_said() -> None:
    # 100 µs in one launch; how much it can win is not known, only that it is below its share.
    (lever,) = frontier.rank(a_campaign(a_cell(a_busy_kernel(bound="too-small")))).open
    assert "more work a launch" in lever.what
    assert (lever.max_win, lever.share, lever.confidence) == (None, 1.0, "percentages")
    assert lever.gate.endswith("it takes less than 100 µs in all")


def test_a_kernel_that_waits_is_to_get_faster_by_launch() -> None:
    (lever,) = frontier.rank(a_campaign(a_cell(a_busy_kernel(bound="latency")))).open
    assert lever.gate.endswith("below 100 µs a launch")


def test_a_kernel_above_its_roof_wins_nothing_and_never_less() -> None:
    over = a_tensor_kernel(rates={"tensor:bf16": 1.2 * 948.9e12})
    assert frontier.rank(a_campaign(a_cell(over))).open == ()


def test_levers_are_ranked_by_win_over_cost() -> None:
    # graphs: 20 % for a setting (1) beats 36 % for a kernel (8).
    campaign = a_campaign(a_cell(a_tensor_kernel(), a_fma_kernel()))
    campaign = dataclasses.replace(campaign, findings=(a_finding(),))
    levers = frontier.rank(campaign).open
    assert levers[0].id == "graphs"
    scores = [lever.score or 0.0 for lever in levers]
    assert scores == sorted(scores, reverse=True)


def test_a_closed_finding_takes_its_lever_off_the_frontier() -> None:
    campaign = a_campaign(a_cell(a_fma_kernel()))
    (lever,) = frontier.rank(campaign).open
    closed = a_finding(
        id=lever.id, status=FindingStatus.CLOSED_NEGATIVE, why="no tensor path for this shape"
    )
    after = frontier.rank(dataclasses.replace(campaign, findings=(closed,)))
    assert after.open == ()
    assert after.refuted == (closed,)
    done = dataclasses.replace(closed, status=FindingStatus.DONE)
    assert frontier.rank(dataclasses.replace(campaign, findings=(done,))).done == (done,)


def test_work_in_progress_keeps_the_numbers_of_the_counters() -> None:
    campaign = a_campaign(a_cell(a_fma_kernel()))
    (lever,) = frontier.rank(campaign).open
    begun = a_finding(
        id=lever.id, status=FindingStatus.IN_PROGRESS, max_win=None, cost=None, gate=None
    )
    (joined,) = frontier.rank(dataclasses.replace(campaign, findings=(begun,))).open
    assert joined.status is FindingStatus.IN_PROGRESS
    assert joined.max_win == lever.max_win
    assert joined.gate == lever.gate
    assert joined.what == "turn CUDA graphs on"


def test_a_finding_without_numbers_is_kept_and_not_ranked_above_measured_ones() -> None:
    campaign = a_campaign(a_cell(a_fma_kernel()))
    bare = a_finding(max_win=None, cost=None)
    levers = frontier.rank(dataclasses.replace(campaign, findings=(bare,))).open
    assert [lever.id == "graphs" for lever in levers] == [False, True]


def test_many_small_kernels_are_one_lever_and_no_wall() -> None:
    # 200 kernels of 0.5 % each, at 42.2 % of their roof: 57.8 % of the time lie in them together.
    rows = [a_fma_kernel(us=10, name=f"k{i:03}") for i in range(200)]
    (lever,) = frontier.rank(a_campaign(a_cell(*rows))).open
    assert lever.id == "candidate:rest"
    assert lever.share == pytest.approx(1.0)
    assert lever.max_win == pytest.approx(1 - 25 / 59.3)
    assert lever.what.startswith("200 kernels that win less than 1 % each (k000, k001, k002 first)")


def test_a_kernel_that_stands_alone_is_proved_by_its_time_and_not_by_its_share() -> None:
    alone = a_kernel("k", us=7, bound="too-small", rates={"dram": 1e9}, dram_read=1, dram_write=1)
    (lever,) = frontier.rank(a_campaign(a_cell(alone))).open
    assert lever.gate == "capture the same work again: it takes less than 7.00 µs in all"


def test_kernels_without_a_time_leave_no_empty_frontier() -> None:
    cell = a_cell(a_busy_kernel())
    (row,) = cell.analysis.kernels
    totals = dataclasses.replace(row.totals, duration_ns=None)
    rows = (dataclasses.replace(row, totals=totals, time_share=None),)
    cell = dataclasses.replace(cell, analysis=dataclasses.replace(cell.analysis, kernels=rows))
    (lever,) = frontier.rank(a_campaign(cell)).open
    assert lever.id == "candidate:untimed"
    assert (lever.max_win, lever.share) == (None, None)


def test_small_shapes_of_one_kernel_are_its_lever() -> None:
    rows = [a_fma_kernel(us=10, name="same") for _ in range(200)]
    (lever,) = frontier.rank(a_campaign(a_cell(*rows))).open
    assert lever.id == "candidate:same:fp32"
    assert lever.max_win == pytest.approx(1 - 25 / 59.3)


def test_a_few_kernels_at_their_roofs_leave_the_frontier_empty() -> None:
    rows = [a_tensor_kernel(us=1, name=f"k{i}", rates={"tensor:bf16": 935e12}) for i in range(5)]
    assert frontier.rank(a_campaign(a_cell(*rows))).open == ()  # each lacks 1.5 % of a fifth


def test_other_kernels_of_the_same_name_are_no_shapes_of_one() -> None:
    rows = [a_fma_kernel(us=us, name="Kernel", name_full=f"Kernel<{us}>") for us in (100, 300)]
    (lever,) = frontier.rank(a_campaign(a_cell(*rows))).open
    assert "in 2 shapes of 2 kernels of that name" in lever.rests_on


def test_shapes_of_one_kernel_win_together() -> None:
    rows = [a_fma_kernel(us=us, name="same") for us in (100, 300)]
    (lever,) = frontier.rank(a_campaign(a_cell(*rows))).open
    assert lever.share == pytest.approx(1.0)
    assert lever.max_win == pytest.approx(1 - 25 / 59.3)


@pytest.mark.parametrize(
    ("bound", "changes", "what", "cost"),
    [
        ("peers", {}, "overlap it with compute", "library"),
        ("too-small", {}, "more work a launch", "setting"),
        ("latency", {}, "hide latency", "kernel"),
        ("dram", {"is_at_roof": True}, "move fewer bytes", "fusion"),
        ("dram", {"is_at_roof": False}, "more bytes in flight", "kernel"),
        ("l2", {}, "more bytes in flight", "kernel"),
        ("tensor:bf16", {}, "another tile shape", "library"),
        (
            "tensor:bf16",
            {"totals": {"tensor_engagement": "legacy-mma"}},
            "warpgroup tensor path",
            "library",
        ),
        ("fp32", {}, "move the work to tensor cores", "kernel"),
    ],
)
def test_what_to_change_follows_from_what_binds(
    bound: str, changes: dict[str, Any], what: str, cost: str
) -> None:
    kernel = a_kernel("k", us=100, bound=bound, rates={"dram": 1e12}, **changes)
    (lever,) = frontier.rank(a_campaign(a_cell(kernel))).open
    assert what in lever.what
    assert lever.cost == cost
    assert lever.gate


def test_a_rest_that_wins_little_together_is_no_lever() -> None:
    # Two kernels take 0.8 % of the time, the third stands at its roof.
    small = [a_fma_kernel(us=4, name=f"k{i}") for i in range(2)]
    roof = a_tensor_kernel(us=992, rates={"tensor:bf16": 948.9e12})
    assert frontier.rank(a_campaign(a_cell(*small, roof))).open == ()


def test_a_kernel_that_waits_and_has_no_time_is_to_take_less() -> None:
    waiting = a_busy_kernel(bound="latency")
    untimed = dataclasses.replace(waiting.totals, duration_ns=None)
    lever = frontier.next_of([dataclasses.replace(waiting, totals=untimed)])
    assert lever is not None
    assert lever.gate.endswith("less time a launch")
