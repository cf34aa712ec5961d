"""Builders of small timelines: an nsys export by its tables, a torch trace by its events."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PROCESS = 4242
GLOBAL_PID = (1 << 48) + (PROCESS << 24)

KERNEL_TABLE = (
    "CREATE TABLE {name} (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, "
    "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, "
    "graphNodeId INTEGER)"
)


def write_sqlite(path: Path, script: str) -> Path:
    """A database made by a script."""
    database = sqlite3.connect(path)
    database.executescript(script)
    database.commit()
    database.close()
    return path


def kernel_row(
    start: int, end: int, name: int, *, device: int = 0, stream: int = 7, node: int | None = None
) -> tuple[Any, ...]:
    """A row of the kernel table; ``name`` is an id of ``write_export``'s names."""
    return (start, end, device, stream, 1, GLOBAL_PID, name, name, 8, 2, 1, 256, 1, 1, node)


def write_export(
    path: Path,
    kernels: Iterable[tuple[Any, ...]] = (),
    *,
    names: Sequence[str] = ("void ns::gemm<1>(int)", "ncclDevKernel_AllReduce(x)"),
    version: str | None = "3.20.3",
    kernel_table: str = "CUPTI_ACTIVITY_KIND_KERNEL",
    more: str = "",
) -> Path:
    """An export with a kernel table, strings (ids from 0) and a schema version."""
    script = [KERNEL_TABLE.format(name=kernel_table) + ";"]
    script.append("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);")
    if version is not None:
        script.append("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);")
        script.append(f"INSERT INTO META_DATA_EXPORT VALUES('EXPORT_SCHEMA_VERSION','{version}');")
    write_sqlite(path, "".join(script) + more)
    database = sqlite3.connect(path)
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(names)))
    marks = ",".join("?" * 15)
    database.executemany(f"INSERT INTO {kernel_table} VALUES ({marks})", list(kernels))
    database.commit()
    database.close()
    return path


def kernel_event(name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    """A kernel of a torch trace; times in microseconds."""
    found = {"device": 0, "stream": 7, "correlation": 1, "grid": [8, 2, 1], "block": [256, 1, 1]}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": ts,
        "dur": dur,
        "args": found | args,
    }


def host_event(cat: str, name: str, ts: float, dur: float) -> dict[str, Any]:
    """An event of the host side."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}


def write_trace(path: Path, events: Sequence[dict[str, Any]], **around: Any) -> Path:
    """A torch trace as Kineto lays it out: keys before and after the events."""
    body = ",\n  ".join(json.dumps(event) for event in events)
    keys = json.dumps({"schemaVersion": 1, "deviceProperties": []} | around)[1:-1]
    path.write_text(f'{{{keys},\n"traceEvents": [\n  {body}\n],\n"traceName": "t.json"}}\n')
    return path
