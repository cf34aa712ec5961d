"""Unions of intervals, over columns of any length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class Union:
    """The union of intervals, as disjoint spans with a running total.

    >>> import pyarrow as pa
    >>> union = Union(pa.array([0, 5, 20]), pa.array([10, 12, 30]))
    >>> union.within(0, 30), union.within(8, 25)
    (22, 9)
    """

    def __init__(self, starts: pa.Array, ends: pa.Array) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if len(starts) == 0:
            self._starts: Sequence[int] = ()
            self._ends: Sequence[int] = ()
            self._before: Sequence[int] = ()
            return
        order = pc.sort_indices(starts)
        begin = pc.take(starts, order)
        reach = pc.cumulative_max(pc.take(ends, order))
        # A span is new where it begins after everything before it has ended.
        fresh = pc.greater(begin[1:], reach[:-1])
        spans = begin.filter(_joined(pa.scalar(True), fresh))
        ends = reach.filter(_joined(fresh, pa.scalar(True)))
        total = pc.cumulative_sum(pc.subtract(ends, spans))
        self._starts, self._ends, self._before = _view(spans), _view(ends), _view(total)

    def until(self, time: int) -> int:
        """How much of the union lies before a time."""
        index = bisect_right(self._starts, time) - 1
        if index < 0:
            return 0
        return self._before[index] - max(0, self._ends[index] - time)

    def within(self, begin: int, end: int) -> int:
        """How much of the union lies in a window."""
        return self.until(end) - self.until(begin)


def _joined(first: Any, second: Any) -> pa.Array:
    """A scalar and an array, or an array and a scalar, end to end."""
    import pyarrow as pa

    parts = [pa.array([x.as_py()]) if isinstance(x, pa.Scalar) else x for x in (first, second)]
    return pa.concat_arrays(parts)


def _view(array: pa.Array) -> Sequence[int]:
    """The integers without a copy into Python objects."""
    import pyarrow as pa

    whole = array.cast(pa.int64())
    start = whole.offset * 8
    data = memoryview(whole.buffers()[1])[start : start + len(whole) * 8]
    return data.cast("q")
