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
        self._weights = {
            name: weight
            for name, where, weight in zip(
                made["names"], made["where"], made["weights"], strict=True
            )
            if where & bit
        }
        self._entry: Mapping[str, Any] = made["chips"][chip]
        self.source = f"table made from {made['library']}"

    @property
    def base_names(self) -> frozenset[str]:
        """Every metric of the chip without suffix."""
        return frozenset(self._weights)

    def has(self, metric: str) -> bool:
        """Whether the full name exists: the base by the table, rollup and suffix by grammar."""
        base, _, suffix = metric.partition(".")
        if base not in self._weights:
            return False
        if suffix in _RATIO_SUFFIXES:
            return True
        rollup, _, rest = suffix.partition(".")
        return rollup in _ROLLUPS and rest in _COUNTER_SUFFIXES

    def tensor(self, dtype: str) -> tuple[str, ...]:
        """The tensor metrics that our lists ask for, by data type; none where there are none."""
        return tuple(self._entry["tensor"].get(dtype, ()))

    def exact(self, list_name: str) -> int | None:
        """Counter passes of one of our own lists, as the library scheduled it."""
        value = self._entry["lists"].get(list_name)
        return None if value is None else int(value)

    def estimate(self, metrics: Sequence[str]) -> int:
        """Counter passes of any list, from its counters by domain. Usually within a third."""
        bases = {m.partition(".")[0] for m in metrics}
        if not bases:
            return 0
        loads: dict[str, float] = {}
        per_pass = self._entry["per_pass"]
        for base in bases:
            domain = domain_of(base)
            if domain == SASS:
                loads[SASS] = 1.0
            elif base in self._entry["dear"] and self._weights[base] > 12:
                # A throughput spans domains; its own cost is known exactly.
                loads["core"] = loads.get("core", 0.0) + self._entry["dear"][base]
            else:
                load = self._weights[base] / per_pass.get(domain, 4.0)
                loads[domain] = loads.get(domain, 0.0) + load
        instrumented = int(loads.pop(SASS, 0.0))
        return instrumented + (math.ceil(max(loads.values())) if loads else 0)


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
    # Same words first: order of words and one word more or less are the usual differences.
    ranked = sorted(pool, key=lambda n: (-_overlap(words, set(n.split("_"))), len(n), n))[:40]
    by_letters = difflib.get_close_matches(base, ranked, n=count, cutoff=0.0)
    return tuple(f"{near}{dot}{suffix}" for near in by_letters)


def _overlap(wanted: set[str], found: set[str]) -> float:
    return len(wanted & found) / len(wanted | found)
