"""How well predicted passes match those that real reports stored.

    python -m bench.passes [--table]

Reads metric names and ``profiler__replayer_passes`` of the reports in ``../shared/corpus``; each
distinct (metric list, passes) counts once. ``--table`` predicts as one without the library does.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solscope.capture import metriclists, passes
from solscope.capture.passes import estimate

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
TOLERANCE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One metric list of a real report, and the passes that ncu made for it."""

    report: str
    chip: str
    release: str
    metrics: tuple[str, ...]
    reported: int
    has_warmup: bool

    @property
    def kind(self) -> str:
        """``small``: no PM sampling, no source counters, at most 22 passes. Else ``large``."""
        is_large = self.has_source_counters or self.pm_groups or self.reported > 22
        return "large" if is_large else "small"

    @property
    def has_source_counters(self) -> bool:
        """Whether warps were sampled for the source page."""
        return any("pcsamp" in metric for metric in self.metrics)

    @property
    def pm_groups(self) -> int:
        """Whether the PM sampler ran, as 0 or 1."""
        return int(any(metric.startswith("pmsampling:") for metric in self.metrics))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """An observation with its prediction."""

    observation: Observation
    computed: int
    predicted: int

    @property
    def error(self) -> int:
        """Reported minus predicted."""
        return self.observation.reported - self.predicted


def observations(corpus: Path = CORPUS) -> Iterator[Observation]:
    """Every distinct list of the corpus whose counters were really collected."""
    seen = set()
    for record in json.loads((corpus / "MANIFEST.json").read_text()):
        golden = record.get("golden")
        if record["kind"] != "ncu-rep" or not golden or not record.get("cc"):
            continue
        chip = _chip(record["cc"][0])
        listing = json.loads(gzip.decompress((corpus / golden["metrics_json"]).read_bytes()))
        for action in (a for r in listing["ranges"] for a in r["actions"]):
            found = _observation(record, chip, action["metrics"])
            if found is not None and (found.report, found.metrics, found.reported) not in seen:
                seen.add((found.report, found.metrics, found.reported))
                yield found


def _chip(capability: str) -> str | None:
    """The family's chip: its schedule stands for the family."""
    try:
        chip = metriclists.identify(capability)
    except Exception:
        return None
    family = {"GB100": chip.name, "GB202": chip.name}.get(chip.family or "", chip.family)
    return None if chip.uncovered else family


def _observation(
    record: dict[str, Any], chip: str | None, metrics: dict[str, Any]
) -> Observation | None:
    def value(name: str) -> Any:
        return (metrics.get(name) or {}).get("v")

    reported = value("profiler__replayer_passes")
    if chip is None or not reported or not isinstance(value("gpu__time_duration.sum"), float):
        return None  # no pass figure, or a launch whose counters were not collected
    return Observation(
        report=record["file"].rsplit("/", 1)[-1].removesuffix(".gz"),
        chip=chip,
        release=str(record.get("ncu_version") or "?")[:6],
        metrics=tuple(sorted(metrics)),
        reported=int(reported),
        has_warmup=bool(value("profiler__replayer_passes_type_warmup")),
    )


def compare(found: Iterable[Observation], *, prefer_table: bool = False) -> list[Compared]:
    """Each observation with what ``solscope plan`` would say of its list."""
    by_chip = {}
    compared = []
    for one in found:
        if one.chip not in by_chip:
            by_chip[one.chip] = passes.counters_of(one.chip, prefer_table=prefer_table)
        counters = by_chip[one.chip]
        counted = [m for m in estimate.scheduled(one.metrics) if counters.has(m)]
        if one.has_source_counters:
            # A stock set: its tensor rooflines show no pass of their own in real reports.
            counted = [m for m in counted if "ops_path" not in m]
        computed = estimate.counter_passes(counted, counters)
        extra = estimate.BASE_PASSES
        if one.has_source_counters:
            extra += estimate.SOURCE_COUNTER_PASSES
        if one.pm_groups:
            extra += estimate.pm_sampling_passes(one.chip)
        predicted = max(1, computed) + extra
        compared.append(Compared(observation=one, computed=computed, predicted=predicted))
    return compared


def share_within(rows: Sequence[Compared], tolerance: int = TOLERANCE) -> float:
    """Share of rows whose prediction is off by at most ``tolerance`` passes."""
    return sum(abs(row.error) <= tolerance for row in rows) / len(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="predict from the shipped table")
    arguments = parser.parse_args()
    rows = compare(observations(), prefer_table=arguments.table)
    rows.sort(key=lambda row: (row.observation.kind != "small", row.observation.reported))
    print(f"{'report':34} {'chip':6} {'ncu':7} {'kind':5} {'metrics':>7} computed predicted real")
    for row in rows:
        one = row.observation
        mark = "" if abs(row.error) <= TOLERANCE else f"  off by {row.error:+d}"
        print(
            f"{one.report[:34]:34} {one.chip:6} {one.release:7} {one.kind:5} "
            f"{len(one.metrics):7} {row.computed:8} {row.predicted:9} {one.reported:4}{mark}"
        )
    for kind in ("small", "large"):
        some = [row for row in rows if row.observation.kind == kind]
        spread = Counter(row.error for row in some)
        shown = ", ".join(f"{error:+d}: {count}" for error, count in sorted(spread.items()))
        print(
            f"{kind}: {len(some)} lists, {share_within(some):.0%} within one pass, "
            f"{share_within(some, 0):.0%} exact; reported minus predicted {shown}"
        )


if __name__ == "__main__":
    main()
