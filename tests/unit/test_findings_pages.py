"""The pages of a capture's bundle: measured apart from concluded, and always a draft."""

from __future__ import annotations

import re

from tests import analyses

from solscope.analysis import frontier
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
    wins = [
        row.time_share * (1 - row.point.profiled_binding.value)
        for row in analysis.kernels
        if row.time_share is not None and row.point.profiled_binding is not None
    ]
    assert lever.max_win == max(wins)


def test_without_counted_work_nothing_is_promised() -> None:
    assert frontier.next_of(()) is None
    text = findings.summary(sample(), experiment="x", lever=None)
    assert "No kernel was measured." in text
