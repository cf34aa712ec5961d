"""How publishing and the shipped queries grow with the lake.

    python -m bench.lake [--sizes 500000,1000000,5000000] [--folder DIR]

Makes campaigns of 50,000 launches, publishes them, and runs the five named queries on the lake
and, as the same SQL, on the campaigns' own JSON files. Each measurement is a process of its own;
memory is its peak resident size. The answers of both must agree.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CAMPAIGN_LAUNCHES = 50_000
HARDWARE = ("a100_sm80", "h100_sm90", "h200_sm90", "b200_sm100")
KERNELS = tuple(f"kernel_{i:03}" for i in range(200))
NUMBERS = (
    "duration_ns",
    "dram_bytes",
    "flop_count",
    "tensor_flop_count",
    "achieved_dram_pct_peak",
    "achieved_sm_pct_peak",
    "achieved_occupancy_pct",
    "smem_per_block_bytes",
)
GAPS = [{"gate": "bench", "reason": "generated"}]
VERDICT = {"tier": "DRAFT", "gaps": GAPS}
PUBLISHED_AT = datetime(2026, 11, 30, tzinfo=UTC)
LAUNCH_TYPES = {
    "name": "VARCHAR",
    "name_full": "VARCHAR",
    "category": "VARCHAR",
    "report": "VARCHAR",
    "device": "BIGINT",
    "stream": "BIGINT",
    "grid": "BIGINT[]",
    "block": "BIGINT[]",
    "registers_per_thread": "BIGINT",
    "block_limit_factor": "VARCHAR",
    **dict.fromkeys(NUMBERS, "DOUBLE"),
}


def make_campaign(root: Path, number: int) -> str:
    """Write a campaign of ``CAMPAIGN_LAUNCHES`` launches; its slug."""
    import msgspec

    slug, dice = f"campaign-{number:04}", random.Random(number)
    cell = root / slug / "cells" / "c1"
    cell.mkdir(parents=True)
    (root / slug / "config.yaml").write_text(f"name: Campaign {number}\n")
    (root / slug / "verdict.json").write_bytes(msgspec.json.encode(VERDICT))
    launches = [_launch(KERNELS[i % len(KERNELS)], dice) for i in range(CAMPAIGN_LAUNCHES)]
    file = {"schema": "solscope.launches/1", "launches": launches}
    (cell / "launches.json").write_bytes(msgspec.json.encode(file))
    kernels = [
        {
            "name": name,
            "launches": len(times),
            "kernel_time_ns": sum(times),
            "speed_of_light_profiled": dice.uniform(0.05, 0.95),
        }
        for index, name in enumerate(KERNELS)
        for times in [[one["duration_ns"] for one in launches[index :: len(KERNELS)]]]
    ]
    document = {
        "schema_version": 1,
        "captured_sources": ["ncu"],
        "hw_key": HARDWARE[number % len(HARDWARE)],
        "captured_at": f"2026-{1 + number % 12:02}-05T00:00:00+00:00",
        "kernels": kernels,
    }
    (cell / "ncu_kernels.json").write_bytes(msgspec.json.encode(document))
    return slug


def _launch(name: str, dice: random.Random) -> dict[str, Any]:
    duration = dice.lognormvariate(9, 1)
    return {
        "name": name,
        "name_full": f"void ns::{name}<128, 64>(Params)",
        "category": "GEMM",
        "report": "decode.ncu-rep",
        "device": 0,
        "stream": 7,
        "grid": [16 * dice.randrange(1, 9), 1, 1],
        "block": [128, 1, 1],
        "duration_ns": duration,
        "dram_bytes": duration * dice.uniform(10, 3000),
        "flop_count": duration * 100,
        "tensor_flop_count": duration * dice.uniform(0, 9e5),
        "achieved_dram_pct_peak": dice.uniform(1, 95),
        "achieved_sm_pct_peak": dice.uniform(1, 95),
        "achieved_occupancy_pct": dice.uniform(5, 95),
        "registers_per_thread": 128,
        "smem_per_block_bytes": 1024.0,
        "block_limit_factor": "registers",
    }


def publish(root: Path, lake: str, slugs: list[str]) -> dict[str, Any]:
    """Publish campaigns; seconds and peak memory of this process."""
    from solscope.flows import publish as flow
    from solscope.lake import delta, rows
    from solscope.lake.delta import Lake
    from solscope.model.lake import Gap, Judgement

    judgement = Judgement(tier="DRAFT", gaps=tuple(Gap(**gap) for gap in GAPS))
    begun = time.perf_counter()
    for slug in slugs:
        made = rows.build(
            flow.read(root, slug),
            judgement,
            strict=False,
            tool_version="bench",
            published_at=PUBLISHED_AT,
        )
        delta.publish(Lake(location=lake), made)
    return {"seconds": time.perf_counter() - begun, "mib": _peak_mib()}


def query_lake(lake: str) -> dict[str, Any]:
    """The five named queries on the lake, each on a connection of its own."""
    from solscope.lake import query
    from solscope.lake.delta import Lake

    for module in ("deltalake", "duckdb", "pyarrow.dataset"):
        importlib.import_module(module)  # before the clock starts
    found = {}
    for shipped in query.named():
        begun = time.perf_counter()
        answer = query.ask(Lake(location=lake), shipped.sql)
        found[shipped.name] = {"seconds": time.perf_counter() - begun, "rows": answer.rows}
    return {"queries": found, "mib": _peak_mib()}


def query_json(root: Path, _lake: str) -> dict[str, Any]:
    """The same SQL on the campaigns' JSON files, read by DuckDB for each query."""
    import duckdb

    from solscope.lake import query

    found = {}
    for shipped in query.named():
        begun = time.perf_counter()
        with duckdb.connect() as database:
            for view in _json_views(root):
                database.execute(view)
            answer = query.answer(database, shipped.sql)
        found[shipped.name] = {"seconds": time.perf_counter() - begun, "rows": answer.rows}
    return {"queries": found, "mib": _peak_mib()}


def _json_views(root: Path) -> list[str]:
    kernels = (
        "{schema_version: 'BIGINT', hw_key: 'VARCHAR', captured_at: 'VARCHAR', kernels: "
        "'STRUCT(name VARCHAR, name_full VARCHAR, launches BIGINT, kernel_time_ns DOUBLE, "
        "speed_of_light_profiled DOUBLE)[]'}"
    )
    fields = ", ".join(f"{name} {kind}" for name, kind in LAUNCH_TYPES.items())
    launches = f"{{schema: 'VARCHAR', launches: 'STRUCT({fields})[]'}}"
    read = "maximum_object_size = 268435456, filename = true"
    plain = ", ".join(f"l.{name}" for name in LAUNCH_TYPES if name not in ("grid", "block"))
    return [
        "CREATE VIEW cells AS SELECT parse_dirpath(filename) AS cell, "
        "split_part(filename, '/', -4) AS campaign, hw_key AS hardware, "
        "captured_at[:7] AS month, kernels FROM "
        f"read_json('{root}/*/cells/*/ncu_kernels.json', columns = {kernels}, {read})",
        "CREATE VIEW kernels AS SELECT campaign, cell, hardware, month, k.* FROM "
        "(SELECT campaign, split_part(cell, '/', -1) AS cell, hardware, month, "
        "unnest(kernels) AS k FROM cells)",
        "CREATE VIEW receipts AS SELECT '' AS campaign, '' AS cell, '' AS step, '' AS sha256 "
        "WHERE false",
        "CREATE VIEW files AS SELECT parse_dirpath(filename) AS cell, unnest(launches) AS l FROM "
        f"read_json('{root}/*/cells/*/launches.json', columns = {launches}, {read})",
        "CREATE VIEW kernel_launches AS SELECT campaign, split_part(cell, '/', -1) AS cell, "
        "hardware, month, "
        "array_to_string(l.grid, 'x') AS grid, array_to_string(l.block, 'x') AS block, "
        f"{plain} FROM files JOIN cells USING (cell)",
        "CREATE VIEW campaigns AS SELECT c.campaign, c.hardware, v.tier, false AS strict, "
        "len(v.gaps) AS gap_count, to_json(v.gaps)::VARCHAR AS gaps_json, "
        f"TIMESTAMPTZ '{PUBLISHED_AT.isoformat()}' AS published_at FROM cells c JOIN (SELECT *, "
        f"split_part(filename, '/', -2) AS campaign FROM read_json('{root}/*/verdict.json', "
        "columns = {tier: 'VARCHAR', gaps: 'STRUCT(gate VARCHAR, reason VARCHAR)[]'}, "
        "filename = true)) v ON v.campaign = c.campaign",
    ]


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _alone(task: str, *arguments: str) -> dict[str, Any]:
    """A task in a process of its own."""
    command = [sys.executable, "-m", "bench.lake", "--task", task, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _agree(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(one, other, strict=True)
    )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def main() -> None:
    """Print a table of times and memory by size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="500000,1000000,5000000")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--task", choices=["publish", "lake", "json"])
    parser.add_argument("arguments", nargs="*")
    given = parser.parse_args()
    if given.task is not None:
        print(json.dumps(_task(given.task, given.arguments), default=str))
        return
    sizes = [int(size) for size in given.sizes.split(",")]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        _measure(Path(folder), sizes)


def _task(task: str, arguments: list[str]) -> dict[str, Any]:
    root, lake, *slugs = arguments
    if task == "publish":
        return publish(Path(root), lake, slugs)
    return query_lake(lake) if task == "lake" else query_json(Path(root), lake)


def _measure(folder: Path, sizes: list[int]) -> None:
    root, lake, there = folder / "campaigns", str(folder / "lake"), 0
    print("launches | publish, s | launches/s | MiB | JSON, MiB | lake, MiB | rows agree")
    for size in sizes:
        wanted = range(there // CAMPAIGN_LAUNCHES, size // CAMPAIGN_LAUNCHES)
        slugs = [make_campaign(root, number) for number in wanted]
        written = _alone("publish", str(root), lake, *slugs)
        on_lake = _alone("lake", str(root), lake)
        on_json = _alone("json", str(root), lake)
        agree = all(
            _agree(on_lake["queries"][name]["rows"], raw["rows"])
            for name, raw in on_json["queries"].items()
        )
        rate = (size - there) / written["seconds"]
        print(
            f"{size:,} | {written['seconds']:.1f} | {rate:,.0f} | {written['mib']:.0f} | "
            f"{_mib(root):.0f} | {_mib(Path(lake)):.0f} | {'yes' if agree else 'NO'}"
        )
        for name, found in on_lake["queries"].items():
            raw = on_json["queries"][name]["seconds"]
            print(f"  {name:<16} lake {found['seconds']:.2f} s   JSON files {raw:.2f} s")
        print(
            f"  {'peak memory':<16} lake {on_lake['mib']:.0f} MiB   JSON {on_json['mib']:.0f} MiB"
        )
        sys.stdout.flush()
        there = size


def _mib(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


if __name__ == "__main__":
    main()
