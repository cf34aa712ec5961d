"""Compute the pass table that ships with the package, from NVIDIA's host library.

    python -m tools.make_passes_table [--check]

For every chip of the chip table: its metric names, the passes of our own lists and of the stock
sets, and how many counters of each domain fit into a pass. Everything but the stock sets'
membership (``tools/stock_sets.json``) comes from the library; its version is in the table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from solscope.capture import metriclists, passes
from solscope.capture.passes import estimate, table
from solscope.capture.passes import library as host
from solscope.errors import CaptureError, UsageError
from solscope.model.plan import Level

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "solscope" / "capture" / "passes" / "data"
STOCK = ROOT / "tools" / "stock_sets.json"
FALLBACK = {"GB202": ("GB202", "GH100"), "GB100": ("GB100", "GH100")}
SAMPLES = 10
SAMPLE_SIZE = 24


def main() -> None:
    """Write the table, or say whether it is what the library gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    made = build()
    if arguments.check:
        sys.exit(0 if table.document() == made else "the shipped table differs from the library")
    raw = json.dumps(made, separators=(",", ":"), sort_keys=True).encode()
    with (DATA / "passes.json.gz").open("wb") as stream:
        stream.write(gzip.compress(raw, mtime=0))
    print(f"{len(made['chips'])} chips, {len(made['entries'])} metrics, {made['library']}")


def build() -> dict[str, Any]:
    """The table as the installed library gives it."""
    library = passes.load_library()
    chips = {
        name: host.ChipCounters(library, name)
        for name in metriclists.known()
        if name in library.chips()
    }
    order = sorted(chips)
    entries, domains = _entries(order, chips)
    return {
        "library": host.version(),
        "order": order,
        "entries": entries,
        "domains": domains,
        "chips": {name: chip_entry(name, chips[name]) for name in order},
        "sets_seen": _seen(),
    }


def _bases(counters: host.ChipCounters) -> tuple[str, ...]:
    return tuple(n for kind in counters.base_names().values() for n in kind if "Triage" not in n)


def _entries(
    order: Sequence[str], chips: dict[str, host.ChipCounters]
) -> tuple[list[list[Any]], list[str]]:
    """([metric, kind, chips as bits, its hardware counters by number], domain of each number).

    A metric stands once for all chips that compute it from the same counters.
    """
    where: dict[tuple[str, tuple[str, ...]], int] = {}
    kinds: dict[str, str] = {}
    for bit, chip in enumerate(order):
        for kind, names in chips[chip].base_names().items():
            kinds.update(dict.fromkeys(names, kind[0]))
        for base in _bases(chips[chip]):
            full = table.any_full_name(base, chips[chip].has)
            raw = chips[chip].raw_counters(full) if full is not None else ()
            where[base, raw] = where.get((base, raw), 0) | 1 << bit
    number = {raw: i for i, raw in enumerate(sorted({r for _, raws in where for r in raws}))}
    # A counter belongs to the unit of the metric that is it alone, else to any that uses it.
    domain: dict[str, str] = {}
    for (base, raws), _ in sorted(where.items(), key=lambda item: (len(item[0][1]), item[0])):
        for raw in raws:
            domain.setdefault(raw, table.domain_of(base))
    entries = [
        [base, kinds[base], bits, [number[r] for r in raws]]
        for (base, raws), bits in sorted(where.items())
    ]
    return entries, [domain[raw] for raw in sorted(number)]


def chip_entry(name: str, counters: host.ChipCounters) -> dict[str, Any]:
    """Passes of our lists and of the stock sets on one chip, and how counters pack there."""
    bases = frozenset(_bases(counters))

    def cost(metrics: Sequence[str]) -> int:
        return counters.passes_of_counters(r for m in metrics for r in counters.raw_counters(m))

    lists: dict[str, int] = {}
    tensor: dict[str, list[str]] = {}
    for dtype in metriclists.dtypes():
        try:
            chosen = metriclists.choose_tensor(dtype, bases, cost)
        except UsageError:
            continue
        if chosen:
            tensor[dtype] = list(chosen)
    for level in (Level.TIME, Level.ROOFLINE, Level.WHY):
        for dtype in (None, *tensor):
            made = metriclists.for_level(
                level,
                chip=name,
                dtype=dtype,
                base_names=bases,
                tensor=tensor.get(dtype or ""),
            )
            lists[made.name] = cost(estimate.scheduled(made.metrics))
    return {
        "lists": lists,
        "tensor": tensor,
        "sets": dict(_sets(name, counters)),
        "per_pass": _per_pass(counters),
    }


def _sets(name: str, counters: host.ChipCounters) -> Iterator[tuple[str, int]]:
    stock = json.loads(STOCK.read_text())
    family = metriclists.known()[name].family or name
    for set_name, lists in stock["sets"].items():
        for source in (*FALLBACK.get(family, (family,)), "GA102"):
            if source in lists:
                metrics = (stock["names"][i] for i in lists[source]["metrics"])
                # Real reports do not show a pass for the tensor rooflines of stock sections:
                # GH100, ncu 2025.1, full: 35 scheduled without them, 42 with, 39-40 reported.
                raw = {
                    r
                    for m in metrics
                    if "ops_path" not in m and counters.has(m)
                    for r in counters.raw_counters(m)
                }
                yield set_name, counters.passes_of_counters(raw)
                break


def _seen() -> dict[str, Any]:
    """What reports of each set and chip say: release, number of results, least to most passes."""
    stock = json.loads(STOCK.read_text())
    return {
        name: {
            chip: {key: entry[key] for key in ("ncu", "reports", "passes")}
            for chip, entry in lists.items()
        }
        for name, lists in stock["sets"].items()
    }


def _per_pass(counters: host.ChipCounters) -> dict[str, float]:
    """Hardware counters of a domain that fit into one pass, on average over random lists."""
    by_domain: dict[str, list[str]] = {}
    for base in counters.base_names()["counter"]:
        if "Triage" not in base and counters.has(f"{base}.sum"):
            by_domain.setdefault(table.domain_of(base), []).append(f"{base}.sum")
    result = {}
    for domain, metrics in sorted(by_domain.items()):
        dice = random.Random(domain)
        size = min(SAMPLE_SIZE, len(metrics))
        raw_count = pass_count = 0
        for _ in range(SAMPLES):
            raw = {r for m in dice.sample(metrics, size) for r in counters.raw_counters(m)}
            try:
                pass_count += counters.passes_of_counters(raw)
            except CaptureError:
                continue  # one of them is named, but not for this kind of collection
            raw_count += len(raw)
        if pass_count:
            result[domain] = round(raw_count / pass_count, 2)
    return result


if __name__ == "__main__":
    main()
