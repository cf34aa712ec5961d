"""The pages of a capture's bundle: measured apart from concluded, and always a draft."""

from __future__ import annotations

import re
from dataclasses import replace

from tests import analyses

from solscope.analysis import frontier
from solscope.model.roofline import RooflinePoint
from solscope.model.verdict import Analysis
from solscope.render import findings


def sample() -> Analysis:
    return analyses.a_decode_step()


def test_observations_conclude_nothing() -> None:
    text = findings.observations(sample())
    for word in ("bound", "speed of light", "latency", "at the roof"):
        assert word not in text.lower()
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) == len(sample().kernels)


def test_every_kernel_has_an_observation_a_mechanism_and_a_confidence() -> None:
    text = findings.mechanisms(sample())
    kernels = len(sample().kernels)
    for part in ("observation", "mechanism", "confidence"):
        assert text.count(f"- {part}: ") == kernels
    assert "percentages only" in text
    assert "work and bytes were counted" in text


def test_a_summary_is_a_draft_with_its_next_lever() -> None:
    analysis = sample()
    lever = frontier.next_of(analysis.kernels)
    assert lever is not None
    text = findings.summary(analysis, experiment="x-1", lever=lever, notes=["2 of 3 launches"])
    assert text.startswith("# x-1\n\nStatus: DRAFT")
    assert "- 2 of 3 launches" in text
    assert f"at most {lever.max_win:.1%} of the profiled kernel time" in text
    assert lever.kernel is not None
    assert "reduce_1stage" in lever.kernel
    (collective,) = (row for row in analysis.kernels if row.totals.name == lever.kernel)
    wins = [
        row.time_share * (1 - row.point.profiled_binding.value)
        for row in analysis.kernels
        if row is not collective
        and row.time_share is not None
        and row.point.profiled_binding is not None
    ]
    # It waits for peers, not for a roof: all of its time can be won.
    assert lever.max_win == collective.time_share
    assert lever.max_win > max(wins)


def test_a_share_that_is_not_known_is_no_zero() -> None:
    tiny = next(row for row in sample().kernels if row.verdict.bound == "too-small")
    lever = frontier.next_of([replace(tiny, time_share=None)])
    assert lever is not None
    assert (lever.share, lever.max_win) == (None, None)
    assert "0.0%" not in lever.gate
    assert "less of the kernel time" in lever.gate
    waiting = replace(
        tiny,
        verdict=replace(tiny.verdict, bound="latency"),
        totals=replace(tiny.totals, duration_ns=None),
        point=RooflinePoint(intensity=None, flop_per_s=None, dram_bytes_per_s=None),
    )
    lever = frontier.next_of([waiting])
    assert lever is not None
    assert "less time a launch" in lever.gate


def test_an_estimated_rate_is_told_from_a_measured_one() -> None:
    measured = analyses.a_gemm()
    assert "no measured rate" not in findings.observations(analyses.an_analysis(measured))
    estimated = replace(
        measured,
        totals=replace(measured.totals, dram_bytes_per_s_estimate=1e12, dram_rate_pair=None),
        point=replace(measured.point, dram_bytes_per_s=None),
    )
    assert "≈ is no measured rate" in findings.observations(analyses.an_analysis(estimated))


def test_without_counted_work_nothing_is_promised() -> None:
    assert frontier.next_of(()) is None
    text = findings.summary(sample(), experiment="x", lever=None)
    assert "No kernel was measured." in text
