"""What must hold of plans whatever is asked."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solscope.capture import passes
from solscope.capture.planning import command, filters, prize, rules
from solscope.errors import UsageError

BASES = sorted(passes.TableCounters("GH100").base_names)[::37]
COUNTERS = passes.TableCounters("GH100")
WORDS = st.text(alphabet="abcdefgh_/.=", min_size=1, max_size=8)


@given(st.lists(st.sampled_from(BASES), max_size=12), st.sampled_from(BASES))
@settings(max_examples=60)
def test_one_metric_more_never_makes_a_list_cheaper(some: list[str], more: str) -> None:
    assert COUNTERS.estimate([*some, more]) >= COUNTERS.estimate(some)


@given(st.lists(st.sampled_from(BASES), min_size=1, max_size=12))
@settings(max_examples=60)
def test_order_and_repetition_cost_nothing(some: list[str]) -> None:
    assert COUNTERS.estimate([*reversed(some), *some]) == COUNTERS.estimate(some)


@given(st.floats(min_value=0, max_value=0.99), st.floats(min_value=0, max_value=0.99))
def test_a_larger_share_never_wins_less(one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert prize.of_share(low, 0).max_speedup <= prize.of_share(high, 0).max_speedup


@given(st.text(alphabet="abc/[]@_", min_size=1, max_size=10).filter(lambda word: word.strip("/")))
def test_a_range_is_spelt_right_once_and_for_all(word: str) -> None:
    once = filters.nvtx_range(word)
    assert filters.nvtx_range(once) == once


@given(st.sampled_from(["", "start-end:"]), st.text(alphabet="/ ", max_size=10))
def test_a_range_without_a_name_is_refused(kind: str, slashes: str) -> None:
    with pytest.raises(UsageError, match="names no NVTX range"):
        filters.nvtx_range(kind + slashes)


@given(st.lists(WORDS, max_size=6))
def test_no_target_crashes_the_unwrapping_or_the_rules(words: list[str]) -> None:
    target = command.unwrap(words)
    assert set(target.argv) <= {*words, "/bin/bash", "python3"}
    rules.check(["ncu", *words])


@pytest.mark.parametrize("line", ["", "ncu", "ncu --", "ncu -c", "ncu --metrics", "-o x"])
def test_a_torn_command_is_checked_without_a_crash(line: str) -> None:
    rules.check(shlex.split(line))
