"""Laws of intervals and of matching names, over anything that can come."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from solscope.analysis.budget.intervals import Union
from solscope.analysis.join.matching import SOURCES, canonical, match
from solscope.model.kernel_name import short_name

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)
NAMES = st.lists(
    st.text(alphabet="abf:<>(), 12/_", max_size=14)
    | st.sampled_from(["f<1>(int)", "void f<1>", "f"]),
    max_size=6,
)


@settings(deadline=None)
@given(SPANS, st.integers(0, 90), st.integers(0, 90))
def test_a_union_covers_each_nanosecond_once(
    spans: list[tuple[int, int]], one: int, other: int
) -> None:
    begin, end = min(one, other), max(one, other)
    covered = {t for start, length in spans for t in range(start, start + length)}
    starts = pa.array([s for s, _ in spans], pa.int64())
    ends = pa.array([s + n for s, n in spans], pa.int64())
    assert Union(starts, ends).within(begin, end) == len(covered & set(range(begin, end)))


@settings(deadline=None)
@given(NAMES, NAMES, NAMES)
def test_every_entry_is_in_exactly_one_match(
    one: list[str], two: list[str], three: list[str]
) -> None:
    names = dict(zip(SOURCES, (one, two, three), strict=True))
    found = match(names)
    for source, entries in names.items():
        places = [p for m in found for p in m.members.get(source, ())]
        assert sorted(places) == list(range(len(entries)))


@settings(deadline=None)
@given(NAMES)
def test_a_source_matched_with_itself_is_all_exact(names: list[str]) -> None:
    named = [name for name in names if canonical(name)]
    found = match({"samples": named, "time": named})
    assert {m.confidence for m in found} <= {"exact"}
    assert all(m.members["samples"] == m.members["time"] for m in found)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_short_name_is_found_for_any_text(name: str) -> None:
    short = short_name(name)
    assert isinstance(short, str)
    assert bool(short) == bool(name)
