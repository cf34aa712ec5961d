"""Which cycles "Issue Slots Busy" is a share of, by the other numbers of the page.

Up to ncu 2025.1 it was a share of active cycles, from 2025.3 on of elapsed ones, and "SM Busy"
with it; no page names its version. What the page prints beside it decides where its digits do:

    share of active cycles   = issued instructions per active cycle / issue slots of an SM
                             = issued instructions per scheduler / active cycles of an SM
    share of elapsed cycles  = that x active cycles / elapsed cycles

Both hold to the last digit in each of the 112 launches of the corpus's reports (ncu 2020.2 to
2026.1, compute capability 7.5 to 12.0) that have the metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from solscope.model.units import printed_unit
from solscope.reports.printed.labels import Era
from solscope.reports.printed.number_format import NumberFormat
from solscope.reports.printed.sections import PrintedLaunch
from solscope.reports.printed.values import half_digit

_COMPUTE = "Compute Workload Analysis"
_SOL = "GPU Speed Of Light Throughput"
_LOAD = "GPU and Memory Workload Distribution"
_ISSUE_SLOTS_PER_SM = 4  # one for each of the four schedulers, compute capability 7.0 and later


@dataclass(frozen=True, slots=True)
class _Span:
    """The values that a printed number may stand for; none below zero."""

    low: float
    high: float

    def __truediv__(self, other: _Span) -> _Span:
        highest = self.high / other.low if other.low > 0 else float("inf")
        return _Span(self.low / other.high if other.high > 0 else 0.0, highest)

    def __mul__(self, other: _Span) -> _Span:
        return _Span(self.low * other.low, self.high * other.high)

    def times(self, factor: float) -> _Span:
        return _Span(self.low * factor, self.high * factor)

    def misses(self, other: _Span) -> bool:
        """Whether no value is common to both, printing errors of the last digit aside."""
        slack = 1e-9 * max(self.high, other.high)
        return self.low > other.high + slack or other.low > self.high + slack


_Rows = Mapping[tuple[str, str], _Span]


def era_by_arithmetic(launches: Iterable[PrintedLaunch], numbers: NumberFormat) -> Era:
    """The era that the numbers of the page prove; unclear where its digits fit both meanings,
    or where launches contradict each other. Raises UnknownUnit."""
    proven = {era for one in launches for era in _proofs(_rows(one, numbers))}
    return proven.pop() if len(proven) == 1 else Era.UNCLEAR


def _proofs(rows: _Rows) -> Iterator[Era]:
    printed = rows.get((_COMPUTE, "Issue Slots Busy"))
    if printed is None:
        return
    shares, ratios = tuple(_active_shares(rows)), tuple(_active_of_elapsed(rows))
    if any(printed.misses(share) for share in shares):
        yield Era.RECENT
    if any(printed.misses(share * ratio) for share in shares for ratio in ratios):
        yield Era.BEFORE_RECENT


def _active_shares(rows: _Rows) -> Iterator[_Span]:
    per_cycle = rows.get((_COMPUTE, "Issued Ipc Active"))
    if per_cycle is not None:
        yield per_cycle.times(100 / _ISSUE_SLOTS_PER_SM)
    issued = rows.get(("Instruction Statistics", "Avg. Issued Instructions Per Scheduler"))
    active = rows.get((_SOL, "SM Active Cycles"))
    if issued is not None and active is not None:
        yield (issued / active).times(100)


def _active_of_elapsed(rows: _Rows) -> Iterator[_Span]:
    elapsed = rows.get((_COMPUTE, "Executed Ipc Elapsed"))
    per_active = rows.get((_COMPUTE, "Executed Ipc Active"))
    if elapsed is not None and per_active is not None:
        yield elapsed / per_active
    total = rows.get((_LOAD, "Total SM Elapsed Cycles"))
    active = rows.get((_LOAD, "Average SM Active Cycles"))
    count = rows.get(("Launch Statistics", "# SMs"))
    if total is not None and active is not None and count is not None:
        yield active * count / total


def _rows(launch: PrintedLaunch, numbers: NumberFormat) -> _Rows:
    """Numbers of the header rows, by section and label; a label that comes twice is left out."""
    found: dict[tuple[str, str], _Span] = {}
    for row in launch.metrics:
        if row.item or row.section not in _SECTIONS:
            continue
        value = row.value(numbers)
        place = (row.section, row.label)
        if not isinstance(value, int | float) or value < 0 or place in found:
            found.pop(place, None)
            continue
        half = half_digit(row.text, printed_unit(row.unit).exponent, numbers)
        found[place] = _Span(max(0.0, value - half), value + half)
    return found


_SECTIONS = frozenset({_COMPUTE, _SOL, _LOAD, "Instruction Statistics", "Launch Statistics"})
