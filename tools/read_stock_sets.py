"""Which metrics each stock section set really collected, read from public reports.

Writes ``tools/stock_sets.json`` for ``make_passes_table.py``. Reads the metric names (and no
value but ``profiler__replayer_passes``) of the stored report listings under
``../shared/corpus/golden``. Run only to refresh; the result is kept in the repository.

    python -m tools.read_stock_sets
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
OUTPUT = ROOT / "tools" / "stock_sets.json"
CHIP_OF = {
    "7.5": "TU102",
    "8.0": "GA100",
    "8.6": "GA102",
    "8.9": "AD102",
    "9.0": "GH100",
    "10.0": "GB100",
    "12.0": "GB202",
}
ROLLUPS = ("sum", "avg", "max", "min")
FREE = ("launch", "device", "profiler", "numa", "derived", "nvlink", "c2clink")
# The sections of the sets that were asked for by section name.
SECTIONS_OF = {"basic": {"LaunchStats", "Occupancy", "SpeedOfLight"}}


def main() -> None:
    """Write the newest list of every (set, chip)."""
    found: dict[tuple[str, str], tuple[str, frozenset[str], list[int]]] = {}
    for name, chip, release, metrics, passes in _reports():
        key = (name, chip)
        old = found.get(key)
        counts = [*(old[2] if old else ()), passes]
        keep = old is not None and (old[0], len(old[1])) >= (release, len(metrics))
        found[key] = (old[0], old[1], counts) if keep and old else (release, metrics, counts)
    names = sorted({m for _, metrics, _ in found.values() for m in metrics})
    index = {name: i for i, name in enumerate(names)}
    sets: dict[str, Any] = {}
    for (name, chip), (release, metrics, counts) in sorted(found.items()):
        sets.setdefault(name, {})[chip] = {
            "ncu": release,
            "reports": len(counts),
            "passes": [min(counts), sorted(counts)[len(counts) // 2], max(counts)],
            "metrics": sorted(index[m] for m in metrics),
        }
    text = json.dumps({"names": names, "sets": sets}, separators=(",", ":"))
    OUTPUT.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    print(f"{len(names)} names, {len(found)} lists")


def _reports() -> Iterator[tuple[str, str, str, frozenset[str], int]]:
    """(set, chip, ncu release, metric names, passes) of every report whose set is known."""
    for record in json.loads((CORPUS / "MANIFEST.json").read_text()):
        golden = record.get("golden")
        if record["kind"] != "ncu-rep" or not golden:
            continue
        chip = CHIP_OF.get((record.get("cc") or ["?"])[0])
        release = ".".join(str(record.get("ncu_version") or "0").split(".")[:2])
        listing = json.loads(gzip.decompress((CORPUS / golden["metrics_json"]).read_bytes()))
        seen = set()
        for action in (a for r in listing["ranges"] for a in r["actions"]):
            metrics = action["metrics"]
            passes = (metrics.get("profiler__replayer_passes") or {}).get("v")
            duration = (metrics.get("gpu__time_duration.sum") or {}).get("v")
            name = _set_name(record, action)
            if chip is None or name is None or not passes or not isinstance(duration, float):
                continue
            names = frozenset(_one_rollup(metrics))
            if (names, passes) not in seen:
                seen.add((names, passes))
                yield name, chip, release, names, int(passes)


def _set_name(record: dict[str, Any], action: dict[str, Any]) -> str | None:
    asked = record.get("capture_set")
    if asked in ("basic", "detailed", "full", "roofline"):
        return str(asked)
    sections = set(action.get("sections") or ())
    if sections - {"WorkloadDistribution"} == SECTIONS_OF["basic"]:
        return "basic"
    return None


def _one_rollup(metrics: dict[str, Any]) -> Iterator[str]:
    """Counter metrics, one rollup for each (ncu adds the others without a pass)."""
    kept: set[tuple[str, str]] = set()
    for name in sorted(metrics, key=lambda n: (n.partition(".")[0], _rank(n))):
        base, _, suffix = name.partition(".")
        if base.partition("__")[0] in FREE or ":" in name or not suffix:
            continue
        rollup, _, rest = suffix.partition(".")
        if rollup not in ROLLUPS:
            yield name
        elif (base, rest) not in kept:
            kept.add((base, rest))
            yield name


def _rank(name: str) -> int:
    rollup = name.partition(".")[2].partition(".")[0]
    return ROLLUPS.index(rollup) if rollup in ROLLUPS else len(ROLLUPS)


if __name__ == "__main__":
    main()
