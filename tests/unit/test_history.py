"""The lake's history: what got slower where it was measured alike; levers over campaigns."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.campaigns import CONTEXT, a_campaign, a_cell, a_fma_kernel
from tests.unit.test_conditions import KNOWN

from solscope.analysis import frontier, history
from solscope.model.campaign import FindingStatus, Frontier, ValueFinding
from solscope.model.context import MeasurementContext
from solscope.model.history import PastKernel
from solscope.render.campaign import history as page


def past(campaign: str, month: int, us: float, **changes: Any) -> PastKernel:
    """A kernel of one campaign and month, everything else alike."""
    context = changes.pop("context", CONTEXT)
    how = {k: changes.pop(k) for k in list(changes) if hasattr(KNOWN, k)}
    values: dict[str, Any] = {
        "campaign": campaign,
        "cell": "c64",
        "captured_at": f"2026-{month:02}-01T00:00:00+00:00",
        "name": "gemm",
        "name_full": "gemm(int)",
        "conditions": dataclasses.replace(KNOWN, **how),
        "context": context,
        "launches": 5,
        "ns_per_launch": us * 1e3,
    }
    return PastKernel(**{**values, **changes})


def other(section: str, **changes: Any) -> MeasurementContext:
    part = dataclasses.replace(getattr(CONTEXT, section), **changes)
    return dataclasses.replace(CONTEXT, **{section: part})


def test_the_newest_is_held_against_the_fastest_earlier_one() -> None:
    rows = [past("june", 6, 10), past("april", 4, 8), past("may", 5, 9)]
    (change,) = history.slower(rows)
    assert (change.before.campaign, change.after.campaign) == ("april", "june")
    assert change.ratio == pytest.approx(1.25)
    assert not change.is_draft


def test_what_got_faster_or_hardly_moved_is_not_listed() -> None:
    assert history.slower([past("april", 4, 8), past("may", 5, 8.3)]) == ()
    assert history.slower([past("april", 4, 8), past("may", 5, 4)]) == ()
    assert history.slower([past("april", 4, 8)]) == ()


def test_a_new_engine_is_the_change_and_is_named() -> None:
    newer = other("stack", version="0.10.0")
    (change,) = history.slower([past("april", 4, 8), past("may", 5, 12, context=newer)])
    assert change.changed == ("stack.version 0.9.1 to 0.10.0",)


@pytest.mark.parametrize(
    "unlike",
    [
        {"context": other("workload", concurrency=1)},
        {"context": other("identity", model="toy-8b")},
        {"context": other("parallelism", tensor=4)},
        {"context": other("regime", state="cold")},
        {"chip": "h200_sxm"},
        {"grid": (64, 1, 1)},
        {"name_full": "gemm(long)"},
        {"device_ordinal": 1},
    ],
)
def test_another_question_is_no_change(unlike: dict[str, Any]) -> None:
    assert history.slower([past("april", 4, 8), past("may", 5, 12, **unlike)]) == ()


@pytest.mark.parametrize(
    ("unlike", "name"),
    [
        ({"sm_clock_hz": 1.2e9}, "SM clock"),
        ({"tool_version": "2026.1"}, "tool version"),
        ({"cache_control": "none"}, "cache control"),
    ],
)
def test_what_was_not_measured_alike_says_so_and_ranks_last(
    unlike: dict[str, Any], name: str
) -> None:
    rows = [past("april", 4, 8), past("may", 5, 80, **unlike)]
    rows += [past("april", 4, 8, name_full="b"), past("may", 5, 9, name_full="b")]
    first, last = history.slower(rows)
    assert first.after.name_full == "b"
    assert [fact.name for fact in last.unlike] == [name]
    text = page.terminal((), {}, (last,), width=200)
    assert "no kernel that was measured alike twice" in text
    assert f"{name} " in text
    assert "x10" not in text


def test_an_earlier_capture_that_is_alike_is_taken_before_a_faster_one_that_is_not() -> None:
    rows = [past("march", 3, 1, tool_version="2024.1"), past("april", 4, 8), past("may", 5, 12)]
    (change,) = history.slower(rows)
    assert change.before.campaign == "april"


def test_what_nobody_stated_makes_a_draft() -> None:
    bare = other("workload", dataset=None)
    rows = [past("april", 4, 8, context=bare), past("may", 5, 12, context=bare, replay_mode=None)]
    (change,) = history.slower(rows)
    assert change.unknown == ("replay mode", "workload.dataset")
    text = page.terminal((), {}, (change,), width=100)
    assert "DRAFT, not known: replay mode, workload.dataset" in text
    assert "8.00 µs to 12.0 µs a launch, x1.50, h100_sxm, 132x1x1 of 128x1x1" in text
    assert page.document((), (change,))["slower"][0]["is_draft"] is True


def test_without_a_time_or_a_shape_there_is_no_history() -> None:
    rows = [past("april", 4, 8), past("may", 5, 12, captured_at=None)]
    assert history.slower([*rows, past("june", 6, 12, grid=None)]) == ()


def closed(lever_id: str) -> ValueFinding:
    return ValueFinding(
        id=lever_id,
        title="fuse it",
        status=FindingStatus.CLOSED_NEGATIVE,
        next_lever="none",
        why="2 % slower, n = 5",
    )


def test_one_lever_of_two_campaigns_is_one_line_with_what_others_found() -> None:
    ours = frontier.rank(a_campaign(a_cell(a_fma_kernel(), cell_id="c64")))
    theirs = frontier.rank(a_campaign(a_cell(a_fma_kernel(), cell_id="c1"), end_to_end_share=0.5))
    third = Frontier(refuted=(closed("c8:warp_decode_kernel:fp32"),))
    (found,) = history.standings({"june": theirs, "may": ours, "april": third})
    assert [slug for slug, _lever in found.open] == ["may", "june"]
    assert found.best.max_win == pytest.approx(1 - 25 / 59.3)
    assert found.refuted == (("april", "2 % slower, n = 5"),)
    text = page.terminal((found,), {"april": third, "may": ours}, (), width=100)
    assert "open in may/c64 (57.8 %), june/c1 (28.9 %)" in text
    assert "but refuted in april: 2 % slower, n = 5" in text
    assert "april  fuse it: 2 % slower, n = 5" in text
    assert page.document((found,), ())["levers"][0]["refuted"] == [
        {"campaign": "april", "why": "2 % slower, n = 5"}
    ]


def test_stated_levers_of_two_campaigns_stay_two() -> None:
    finding = ValueFinding(
        id="graphs",
        title="graphs off",
        status=FindingStatus.NOT_DONE,
        next_lever="turn graphs on",
        max_win=0.1,
        cost="setting",
    )
    one = frontier.rank(dataclasses.replace(a_campaign(), cells=(), findings=(finding,)))
    assert len(history.standings({"may": one, "june": one})) == 2
    assert history.standings({}) == ()
    assert "none is open" in page.terminal((), {}, (), width=100)
