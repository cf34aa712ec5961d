"""Predicted passes against those that ncu stored in real reports."""

from __future__ import annotations

import pytest
from bench import passes as bench
from tests import corpus

from solscope.capture import passes

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def found() -> list[bench.Observation]:
    corpus.require(corpus.CORPUS)
    return list(bench.observations(corpus.CORPUS))


def of_kind(rows: list[bench.Compared], kind: str) -> list[bench.Compared]:
    return [row for row in rows if row.observation.kind == kind]


@pytest.mark.skipif(passes.installed() is None, reason="the extra `passes` is not installed")
def test_every_small_list_is_predicted_within_one_pass(found: list[bench.Observation]) -> None:
    rows = of_kind(bench.compare(found), "small")
    assert len(rows) >= 30
    assert [r.observation.report for r in rows if abs(r.error) > 1] == []
    assert bench.share_within(rows, 0) >= 0.7  # and most are exact


@pytest.mark.skipif(passes.installed() is None, reason="the extra `passes` is not installed")
def test_most_large_lists_are_predicted_within_one_pass(found: list[bench.Observation]) -> None:
    rows = of_kind(bench.compare(found), "large")
    assert len(rows) >= 40
    assert bench.share_within(rows) >= 0.8
    # The rest: consumer Blackwell, one release with seven sampling groups, short GA100 kernels.
    assert all(abs(r.error) <= 5 for r in rows)


def test_without_the_library_small_lists_are_within_a_third(
    found: list[bench.Observation],
) -> None:
    rows = of_kind(bench.compare(found, prefer_table=True), "small")
    near = [r for r in rows if abs(r.error) <= max(1, r.observation.reported / 3)]
    assert len(near) / len(rows) >= 0.8
