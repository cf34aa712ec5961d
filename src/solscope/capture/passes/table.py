"""The shipped table: what the host library computed, for those who do not have it.

Metric names of every chip, exact passes of our own lists and of ncu's section sets, and for
other lists an estimate from how many counters of a hardware domain fit into one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

_ROLLED_UP = (".sum", ".ratio", ".pct", ".avg.pct_of_peak_sustained_elapsed", ".max_rate")
_CORE = ("sm", "smsp")
SASS = "instrumented"

_COUNTER_SUFFIXES = frozenset(
    {
        "",
        "peak_sustained",
        "peak_sustained_active",
        "peak_sustained_active.per_second",
        "peak_sustained_elapsed",
        "peak_sustained_elapsed.per_second",
        "per_cycle_active",
        "per_cycle_elapsed",
        "per_second",
        "pct_of_peak_sustained_active",
        "pct_of_peak_sustained_elapsed",
    }
)
_THROUGHPUT_SUFFIXES = frozenset({"pct_of_peak_sustained_active", "pct_of_peak_sustained_elapsed"})
_COUNTER, _RATIO = "c", "r"  # any other kind is a throughput
_ROLLUPS = frozenset({"sum", "avg", "max", "min"})
_RATIO_SUFFIXES = frozenset({"ratio", "pct", "max_rate"})


@cache
def document() -> Mapping[str, Any]:
    """The packaged table as it was written."""
    import gzip
    import json
    from importlib import resources

    raw = resources.files(__package__).joinpath("data/passes.json.gz").read_bytes()
    made: Mapping[str, Any] = json.loads(gzip.decompress(raw))
    return made


def domain_of(base: str) -> str:
    """The hardware domain whose counters share the passes; different domains do not compete.

    SM and SM sub-partition counters share one; instrumented instructions take a pass of their
    own, however many they are.
    """
    if "__sass" in base:
        return SASS
    unit = base.partition("__")[0]
    return "core" if unit in _CORE else unit


def any_full_name(base: str, has: Callable[[str], bool]) -> str | None:
    """A full metric name of this base that exists."""
    return next((f"{base}{suffix}" for suffix in _ROLLED_UP if has(f"{base}{suffix}")), None)


class TableCounters:
    """One chip's metrics as the table has them."""

    def __init__(self, chip: str) -> None:
        made = document()
        self.chip = chip
        bit = 1 << made["order"].index(chip)
        self._counters: dict[str, list[int]] = {
            name: raw for name, _, where, raw in made["entries"] if where & bit
        }
        self._kinds: dict[str, str] = {name: kind for name, kind, *_ in made["entries"]}
        self._domains: Sequence[str] = made["domains"]
        self._entry: Mapping[str, Any] = made["chips"][chip]
        self.source = f"table made from {made['library']}"

    @property
    def base_names(self) -> frozenset[str]:
        """Every metric of the chip without suffix."""
        return frozenset(self._counters)

    def has(self, metric: str) -> bool:
        """Whether the full name exists: the base by the table, rollup and suffix by grammar."""
        base, _, suffix = metric.partition(".")
        if base not in self._counters:
            return False
        kind = self._kinds[base]
        if kind == _RATIO:
            return suffix in _RATIO_SUFFIXES
        rollup, _, rest = suffix.partition(".")
        allowed = _COUNTER_SUFFIXES if kind == _COUNTER else _THROUGHPUT_SUFFIXES
        return rollup in _ROLLUPS and rest in allowed

    def tensor(self, dtype: str) -> tuple[str, ...]:
        """The tensor metrics that our lists ask for, by data type; none where there are none."""
        return tuple(self._entry["tensor"].get(dtype, ()))

    def exact(self, list_name: str) -> int | None:
        """Counter passes of one of our own lists, as the library scheduled it."""
        value = self._entry["lists"].get(list_name)
        return None if value is None else int(value)

    def estimate(self, metrics: Sequence[str]) -> int:
        """Counter passes of any list: the fullest hardware domain decides.

        Which hardware counters the metrics share is known; how they pack is not, only how many
        of a domain fit into one pass on average.
        """
        numbers = {n for m in metrics for n in self._counters.get(m.partition(".")[0], ())}
        loads: dict[str, int] = {}
        for number in numbers:
            domain = self._domains[number]
            loads[domain] = loads.get(domain, 0) + 1
        instrumented = 1 if loads.pop(SASS, 0) else 0
        per_pass = self._entry["per_pass"]
        fullest = max((n / per_pass.get(d, n) for d, n in loads.items()), default=0.0)
        return instrumented + math.ceil(fullest - 0.01)


def set_passes(chip: str, set_name: str) -> int | None:
    """Counter passes of a section set on a chip, as the library scheduled its metrics."""
    entry = document()["chips"].get(chip)
    value = None if entry is None else entry["sets"].get(set_name)
    return None if value is None else int(value)


def set_names() -> tuple[str, ...]:
    """The section sets that the table knows."""
    return tuple(document()["sets_seen"])


def seen(set_name: str, family: str) -> Mapping[str, Any] | None:
    """What real reports of a set on a chip family say: ``ncu``, ``reports``, ``passes``
    (least, median, most). None where no report was seen.
    """
    found: Mapping[str, Any] | None = document()["sets_seen"].get(set_name, {}).get(family)
    return found


def covers(chip: str) -> bool:
    """Whether the table has this chip."""
    return chip in document()["order"]


def nearest(name: str, base_names: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """The metrics of a chip whose names are nearest to one that it lacks, suffix kept."""
    import difflib

    base, dot, suffix = name.partition(".")
    unit = base.partition("__")[0]
    pool = [n for n in base_names if n.partition("__")[0] == unit] or list(base_names)
    words = set(base.split("_"))
    # Words first: their order, and one more or less, are the usual differences between chips.
    likely = sorted(pool, key=lambda n: (-_overlap(words, set(n.split("_"))), len(n), n))[:60]

    def likeness(near: str) -> float:
        letters = difflib.SequenceMatcher(None, base, near).ratio()
        return 2 * _overlap(words, set(near.split("_"))) + letters

    ranked = sorted(likely, key=likeness, reverse=True)
    return tuple(f"{near}{dot}{suffix}" for near in ranked[:count])


def _overlap(wanted: set[str], found: set[str]) -> float:
    return len(wanted & found) / len(wanted | found)
