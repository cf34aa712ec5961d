"""From scheduled counter passes to the passes that ncu will really make.

What ncu adds to the scheduled counters, read off public reports (32 small lists, 42 large ones,
ncu 2020.2 to 2026.2): one pass on top of every list; two for source counters (warp sampling and
per-instruction counts); one for each group of PM sampling. The host library's schedule hardly
differs between its releases 12.4 and 13.5. See docs/explanation/passes.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from solscope.capture.passes import table
from solscope.capture.passes.library import ChipCounters, Library, installed, version
from solscope.errors import CaptureError, UsageError
from solscope.model.plan import MetricList, PassEstimate, PassMethod, UnknownMetric

BASE_PASSES = 1
SOURCE_COUNTER_PASSES = 2
PM_SAMPLING_GROUPS = {"TU102": 1, "GA100": 4}
PM_SAMPLING_DEFAULT = 2
# What belongs to the launch or the device is read, not counted.
FREE_PREFIXES = ("launch__", "device__", "profiler__", "numa__", "derived__", "nvlink__")
WITH_SOURCE_COUNTERS = frozenset({"detailed", "full", "source"})
WITH_PM_SAMPLING = frozenset({"full", "pmsampling"})
BREAKDOWN, GROUP, REGEX = "breakdown:", "group:", "regex:"
_SUFFIXES = (".sum", ".avg", ".ratio", ".pct", ".avg.pct_of_peak_sustained_elapsed")
SECTIONS_WITHOUT_COUNTERS = frozenset({"LaunchStats", "Occupancy", "NumaAffinity"})


class Counters(Protocol):
    """What is known of one chip's metrics, from the library or from the table."""

    source: str

    @property
    def base_names(self) -> frozenset[str]:
        """Every metric without suffix."""

    def has(self, metric: str) -> bool:
        """Whether the full name exists."""


class LibraryCounters:
    """One chip's metrics as the installed library has them."""

    def __init__(self, library: Library, chip: str) -> None:
        self._counters = ChipCounters(library, chip)
        self.chip = chip
        self.source = version()
        self._names: frozenset[str] | None = None

    @property
    def base_names(self) -> frozenset[str]:
        """Every metric without suffix."""
        if self._names is None:
            kinds = self._counters.base_names().values()
            self._names = frozenset(n for kind in kinds for n in kind if "Triage" not in n)
        return self._names

    def has(self, metric: str) -> bool:
        """Whether the full name exists."""
        return self._counters.has(metric)

    def count(self, metrics: Sequence[str]) -> int:
        """Passes that these metrics' counters take together."""
        raw = {r for m in metrics for r in self._counters.raw_counters(m)}
        return self._counters.passes_of_counters(raw)


def load_library(path: Path | None = None) -> Library:
    """The installed library. Raises CaptureError, with the install line, where there is none."""
    found = path or installed()
    if found is None:
        raise CaptureError(
            "the pass library is not installed",
            hint="pip install 'solscope[passes]'",
        )
    return Library(found)


def counters_of(chip: str, *, prefer_table: bool = False) -> LibraryCounters | table.TableCounters:
    """The metrics of a chip, by the library when it is there and knows the chip, else the table.

    Raises UsageError for a chip that neither covers.
    """
    if not prefer_table and installed() is not None:
        library = load_library()
        if chip in library.chips():
            return LibraryCounters(library, chip)
    if table.covers(chip):
        return table.TableCounters(chip)
    raise UsageError(
        f"no pass is known for {chip}",
        where="--chip",
        hint="the pass library and the shipped table begin with Turing (compute capability 7.5)",
    )


def is_free(metric: str) -> bool:
    """Whether the metric is read from the launch or the device, at no pass."""
    return metric.startswith(FREE_PREFIXES)


def is_sampled(metric: str) -> bool:
    """Whether the metric comes from sampling warps, which no counter schedule holds."""
    return "pcsamp" in metric


def scheduled(metrics: Iterable[str]) -> list[str]:
    """Those of a list that need hardware counters, a breakdown under its throughput's name."""
    return [
        metric.removeprefix(BREAKDOWN)
        for metric in metrics
        if not is_free(metric) and not is_sampled(metric) and not metric.startswith(GROUP)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A user's own list against a chip: what it has, and what it has not."""

    known: tuple[str, ...]
    unknown: tuple[UnknownMetric, ...]


def check(metrics: Sequence[str], counters: Counters) -> Checked:
    """Sort a list of full metric names into those that the chip has and those that it lacks."""
    known: list[str] = []
    unknown: list[UnknownMetric] = []
    for metric in dict.fromkeys(metrics):
        if metric.startswith(REGEX):
            known += _expanded(metric, counters)
        elif _exists(metric, counters):
            known.append(metric)
        else:
            near = table.nearest(metric, counters.base_names)
            if "." not in metric and metric in counters.base_names:
                spelled = (f"{metric}{suffix}" for suffix in _SUFFIXES)
                near = tuple(name for name in spelled if counters.has(name))[:3]
            unknown.append(UnknownMetric(name=metric, nearest=near))
    return Checked(known=tuple(known), unknown=tuple(unknown))


def _exists(metric: str, counters: Counters) -> bool:
    if is_free(metric) or is_sampled(metric) or metric.startswith(GROUP):
        return True
    return counters.has(metric.removeprefix(BREAKDOWN))


def _expanded(metric: str, counters: Counters) -> list[str]:
    """Every metric of the chip that a ``regex:`` entry selects, by one full name each.

    Raises UsageError for a broken expression, or one that selects nothing.
    """
    try:
        # What follows an escaped dot selects rollups, which cost nothing more.
        stem, has_suffix, _ = metric.removeprefix(REGEX).partition("\\.")
        expression = re.compile(f"{stem}$" if has_suffix else stem)
    except re.error as error:
        raise UsageError(
            f"not a regular expression: {metric} ({error})", where="--metrics"
        ) from None
    bases = sorted(base for base in counters.base_names if expression.search(base))
    named = (table.any_full_name(base, counters.has) for base in bases)
    found = [name for name in named if name is not None]
    if not found:
        raise UsageError(f"no metric of this chip matches {metric}", where="--metrics")
    return found


def of_list(
    wanted: MetricList, counters: LibraryCounters | table.TableCounters, *, family: str
) -> PassEstimate:
    """Passes of a metric list on its chip; of a section set where it names one."""
    if wanted.section_set is not None:
        return _of_set(wanted, counters, family=family)
    method, passes = _scheduled(wanted.name, scheduled(wanted.metrics), counters)
    basis = [_counted(passes), f"{BASE_PASSES} more, as in real reports of every kind"]
    other = BASE_PASSES
    if any(is_sampled(metric) for metric in wanted.metrics):
        other += SOURCE_COUNTER_PASSES
        basis.append(f"{SOURCE_COUNTER_PASSES} for sampling warps")
    unknown_cost = [s for s in wanted.sections if s not in SECTIONS_WITHOUT_COUNTERS]
    unknown_cost += [m for m in wanted.metrics if m.startswith(GROUP) and not is_sampled(m)]
    if unknown_cost:
        basis.append(f"not counted: {', '.join(unknown_cost)}")
    spread = 1 if method is not PassMethod.ESTIMATE else max(2, round(passes / 3))
    predicted = max(passes, 1) + other
    return PassEstimate(
        predicted=predicted,
        method=method,
        counter_passes=passes,
        other_passes=other,
        low=max(1, predicted - spread),
        high=predicted + spread,
        source=counters.source,
        basis=tuple(basis),
    )


def counter_passes(metrics: Sequence[str], counters: LibraryCounters | table.TableCounters) -> int:
    """Passes for the counters of these metrics alone: scheduled by the library, else estimated."""
    if isinstance(counters, LibraryCounters):
        return counters.count(metrics)
    return counters.estimate(metrics)


def pm_sampling_passes(family: str) -> int:
    """Passes that the PM sampling of the full set adds on a chip family."""
    return PM_SAMPLING_GROUPS.get(family, PM_SAMPLING_DEFAULT)


def _scheduled(
    name: str, metrics: Sequence[str], counters: LibraryCounters | table.TableCounters
) -> tuple[PassMethod, int]:
    if isinstance(counters, LibraryCounters):
        return PassMethod.LIBRARY, counters.count(metrics)
    exact = counters.exact(name)
    if exact is not None:
        return PassMethod.TABLE, exact
    return PassMethod.ESTIMATE, counters.estimate(metrics)


def _of_set(
    wanted: MetricList, counters: LibraryCounters | table.TableCounters, *, family: str
) -> PassEstimate:
    name = wanted.section_set or ""
    passes = table.set_passes(wanted.chip, name)
    if passes is None:
        raise UsageError(
            f"the passes of the section set {name!r} are not known",
            where="--set",
            hint=f"one of {', '.join(table.set_names())}; `ncu --list-sets` shows ncu's own",
        )
    parts = _beyond_counters(name, family)
    other = sum(count for count, _ in parts)
    basis = [_counted(passes), *(f"{n} {why}" for n, why in parts)]
    predicted, low, high = passes + other, *_band(passes + other)
    seen = table.seen(name, family)
    method = PassMethod.TABLE
    if seen is not None:
        low, predicted, high = seen["passes"]
        low, high = min(low, predicted - 1), max(high, predicted + 1)
        method = PassMethod.REPORTS
        basis.append(
            f"real {family} reports of this set: {_span(seen['passes'])} "
            f"({seen['reports']} results, up to ncu {seen['ncu']})"
        )
    return PassEstimate(
        predicted=predicted,
        method=method,
        counter_passes=passes,
        other_passes=other,
        low=low,
        high=high,
        source=f"table made from {table.document()['library']}",
        basis=tuple(basis),
    )


def _beyond_counters(set_name: str, family: str) -> list[tuple[int, str]]:
    parts = [(BASE_PASSES, "more, as in real reports of every kind")]
    if set_name in WITH_SOURCE_COUNTERS:
        parts.append((SOURCE_COUNTER_PASSES, "for source counters"))
    if set_name in WITH_PM_SAMPLING:
        parts.append((pm_sampling_passes(family), "for PM sampling"))
    return parts


def _counted(passes: int) -> str:
    return f"{passes} counter pass{'' if passes == 1 else 'es'} scheduled"


def _band(predicted: int) -> tuple[int, int]:
    spread = max(1, round(predicted * 0.15))
    return max(1, predicted - spread), predicted + spread


def _span(passes: Sequence[int]) -> str:
    return str(passes[0]) if passes[0] == passes[-1] else f"{passes[0]}-{passes[-1]}"
