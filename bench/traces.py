"""Speed and memory of the timeline readers, against the plain way, in one run.

    python bench/traces.py [--kernels N] [--trace-mb N] [--folder DIR]

Makes an nsys-like export of N kernels (5 million unless told) and a torch-like trace, reads
both and prints seconds and peak memory. Each measurement runs in a process of its own, so that
peaks do not mix. The plain way is one SELECT into Python tuples, summed in a dictionary, and
``json.load`` of the whole trace.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = 300
TRACE_EVENT_BYTES = 600


def make_export(path: Path, kernels: int) -> None:
    """An export with the columns of schema 3.x, made by SQL alone."""
    database = sqlite3.connect(path)
    database.executescript(
        """
        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
        INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3');
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
            start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
            correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
            gridX INTEGER, gridY INTEGER, gridZ INTEGER,
            blockX INTEGER, blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER);
        """
    )
    database.executemany(
        "INSERT INTO StringIds VALUES (?, ?)",
        [(i, f"void ns::kernel_{i}<{i}, float>(float const*, int)") for i in range(NAMES)],
    )
    database.execute(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?) "
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 2000, i * 2000 + 900 + i % 700, i % 8, "
        "1, 7, i, 281476838981632 + (i % 8) * 16777216, i % ?, i % ?, 128, 1, 1, 256, 1, 1, "
        "CASE WHEN i % 3 = 0 THEN i % 4000 END FROM n",
        (kernels, NAMES, NAMES),
    )
    database.commit()
    database.close()


def make_trace(path: Path, megabytes: int) -> int:
    """A trace like Kineto's: two thirds host events with stacks, one third kernels."""
    count = megabytes * 1_000_000 // TRACE_EVENT_BYTES
    with path.open("w", encoding="utf-8") as file:
        file.write('{\n  "schemaVersion": 1,\n  "traceEvents": [\n')
        for i in range(count):
            event = _kernel(i) if i % 3 == 0 else _frame(i)
            file.write(("  " if i == 0 else ",\n  ") + json.dumps(event))
        file.write('\n  ],\n  "traceName": "bench.json"\n}\n')
    return (count + 2) // 3


def _kernel(i: int) -> dict[str, object]:
    args = {"device": 0, "stream": 7, "correlation": i, "grid": [128, 1, 1], "block": [256, 1, 1]}
    name = f"void ns::kernel_{i % NAMES}<{i % NAMES}>(" + "float const*, " * 30 + "int)"
    return {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7,
        "ts": 2239812471259.332 + i * 3, "dur": 2.5, "args": args,
    }  # fmt: skip


def _frame(i: int) -> dict[str, object]:
    args = {"Python id": i, "Python parent id": i - 1, "Ev Idx": i, "Input Dims": [[16, 512]] * 20}
    name = f"/site-packages/torch/nn/modules/module.py({i % 2000}): _call_impl" + "x" * 200
    return {
        "ph": "X", "cat": "python_function", "name": name, "pid": 251, "tid": 251,
        "ts": 2239812471259.332 + i * 3, "dur": 12.5, "args": args,
    }  # fmt: skip


def plain_sql(path: str) -> int:
    """One SELECT of the same columns into tuples, summed by name."""
    rows = (
        sqlite3.connect(path)
        .execute(
            "SELECT start, end, s.value, deviceId, streamId, globalPid, correlationId, gridX, "
            "gridY, gridZ, blockX, blockY, blockZ, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL k "
            "JOIN StringIds s ON s.id = k.demangledName"
        )
        .fetchall()
    )
    totals: dict[object, int] = {}
    for row in rows:
        totals[row[2]] = totals.get(row[2], 0) + row[1] - row[0]
    return len(rows)


def plain_sql_three(path: str) -> int:
    """The least a sum needs: begin, end and name id only."""
    rows = (
        sqlite3.connect(path)
        .execute("SELECT start, end, demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL")
        .fetchall()
    )
    totals: dict[object, int] = {}
    for start, end, name in rows:
        totals[name] = totals.get(name, 0) + end - start
    return len(rows)


def ours_sql(path: str) -> int:
    """Our reader, and the sums."""
    from solscope.reports import nsys

    report = nsys.read(path, "")
    report.kernel_times()
    return int(report.kernels.num_rows)


def plain_json(path: str) -> int:
    """The whole trace as Python objects."""
    with open(path, encoding="utf-8") as file:
        return sum(event.get("cat") == "kernel" for event in json.load(file)["traceEvents"])


def ours_json(path: str) -> int:
    """Our reader, and the sums."""
    from solscope.reports import kineto

    report = kineto.read(path, "")
    report.kernel_times()
    return int(report.kernels.num_rows)


WAYS = {f.__name__: f for f in (plain_sql, plain_sql_three, ours_sql, plain_json, ours_json)}


def measure(way: str, path: Path) -> dict[str, float]:
    """Run one way in a fresh process: rows, seconds, peak MiB."""
    done = subprocess.run(
        [sys.executable, __file__, "--way", way, "--file", str(path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")},
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Make the inputs, measure every way, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=5_000_000)
    parser.add_argument("--trace-mb", type=int, default=200)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="", help="only ways whose name contains this")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--file")
    args = parser.parse_args()
    if args.way:
        begun = time.perf_counter()
        rows = WAYS[args.way](args.file)
        seconds = time.perf_counter() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"rows": rows, "seconds": seconds, "peak_mib": peak}))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        export, trace = Path(folder, "bench.sqlite"), Path(folder, "bench.json")
        make_export(export, args.kernels)
        make_trace(trace, args.trace_mb)
        for way in WAYS:
            if args.only not in way:
                continue
            path = export if "sql" in way else trace
            result = measure(way, path)
            print(
                f"{way:<16} {result['rows']:>10,.0f} kernels  {result['seconds']:7.2f} s  "
                f"peak {result['peak_mib']:7,.0f} MiB  ({path.stat().st_size / 1e6:,.0f} MB file)"
            )


if __name__ == "__main__":
    main()
