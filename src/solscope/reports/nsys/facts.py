"""What an export says beside its events: devices, API calls, how it was captured, complaints."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping

from solscope.model.finding import Issue, Severity
from solscope.model.report import Device
from solscope.model.trace import CallTotal
from solscope.reports.nsys.schema import Schema, Table, quoted

# ENUM_CUDA_MEMCPY_OPER as exported; the 2021 schema has no such table, the ids are CUPTI's own.
MEMCPY_KINDS = {0: "Unknown", 1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD"}
MEMCPY_KINDS |= {7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}

_VERSION_SUFFIX = re.compile(r"_v\d+$")
_TELLING = re.compile(
    r"not supported|unsupported|Not all CUDA events|dropped|lost|out of memory|"
    r"insufficient|might have not been|failed",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"OpenGL|Vulkan|paranoid|cuBLAS|cuDNN|NVTX", re.IGNORECASE)


def copy_kinds(database: sqlite3.Connection, schema: Schema) -> Mapping[int, str]:
    """Copy kinds by number, in CUPTI's short words."""
    table = schema.get("copy_kinds")
    if table is None:
        return MEMCPY_KINDS
    rows = database.execute(f"SELECT id, name FROM {quoted(table.name)}")
    named = {int(key): str(name).removeprefix("CUDA_MEMCPY_KIND_") for key, name in rows}
    return {key: _short_kind(name) for key, name in named.items()} or MEMCPY_KINDS


def _short_kind(name: str) -> str:
    match = re.fullmatch(r"([HDAP])TO([HDAP])", name)
    return f"{match[1]}to{match[2]}" if match else name.capitalize()


def strings(database: sqlite3.Connection, schema: Schema) -> Mapping[int, str]:
    """The export's strings by id; empty where it has none."""
    table = schema.get("strings")
    if table is None:
        return {}
    rows = database.execute(f"SELECT id, value FROM {quoted(table.name)}")
    return {int(key): str(value) for key, value in rows}


def calls(
    database: sqlite3.Connection, schema: Schema, names: Mapping[int, str]
) -> tuple[CallTotal, ...]:
    """API calls summed by name; the ``_v7000`` that CUPTI appends is cut off."""
    table = schema.get("calls")
    if table is None or not {"start", "end", "name"} <= set(table.columns):
        return ()
    start, end, name = (quoted(table.columns[role]) for role in ("start", "end", "name"))
    rows = database.execute(
        f"SELECT {name}, COUNT(*), SUM({end} - {start}) FROM {quoted(table.name)} GROUP BY {name}"
    )
    totals: dict[str, tuple[int, float]] = {}
    for key, count, spent in rows:
        label = names.get(key, str(key)) if isinstance(key, int) else str(key)
        label = _VERSION_SUFFIX.sub("", label)
        before = totals.get(label, (0, 0.0))
        totals[label] = (before[0] + int(count), before[1] + float(spent or 0))
    found = [CallTotal(name=n, calls=c, total_ns=t) for n, (c, t) in totals.items()]
    return tuple(sorted(found, key=lambda call: -call.calls))


def devices(database: sqlite3.Connection, schema: Schema) -> tuple[Device, ...]:
    """The CUDA devices by CUDA's own ordinal; display adapters without SMs are left out."""
    ordinals = _cuda_ordinals(database, schema)
    new, old = schema.get("gpus"), schema.get("old_gpus")
    found = []
    if old is not None:  # up to 2021 the attributes stood in a table of their own
        found = [_old_device(row) for row in _rows(database, old)]
    elif new is not None:
        found = [_device(row, ordinals) for row in _rows(database, new)]
    known = [device for device in found if device.sm_count]
    return tuple(sorted(known, key=lambda d: -1 if d.ordinal is None else d.ordinal))


def _device(row: Mapping[str, object], ordinals: Mapping[int, int]) -> Device:
    gpu = _integer(row.get("id"))
    major, minor = _integer(row.get("computeMajor")), _integer(row.get("computeMinor"))
    clock_hz = _integer(row.get("clockRate"))
    return Device(
        name=_text(row.get("name")),
        compute_capability=None if major is None or minor is None else (major, minor),
        sm_count=_integer(row.get("smCount")),
        ordinal=ordinals.get(gpu, _integer(row.get("cuDevice"))) if gpu is not None else None,
        max_sm_clock_khz=None if not clock_hz else clock_hz / 1e3,
        max_warps_per_sm=_integer(row.get("maxWarpsPerSm")),
        l2_bytes=_integer(row.get("l2CacheSize")),
        memory_bytes=_integer(row.get("totalMemory")),
    )


def _old_device(row: Mapping[str, object]) -> Device:
    major = _integer(row.get("computeCapabilityMajor"))
    minor = _integer(row.get("computeCapabilityMinor"))
    clock_khz = _integer(row.get("coreClockRate"))
    return Device(
        name=_text(row.get("name")),
        compute_capability=None if major is None or minor is None else (major, minor),
        sm_count=_integer(row.get("numMultiprocessors")),
        ordinal=_integer(row.get("deviceId")),
        max_sm_clock_khz=None if not clock_khz else float(clock_khz),
        max_warps_per_sm=_integer(row.get("maxWarpsPerMultiprocessor")),
        l2_bytes=_integer(row.get("l2CacheSize")),
        memory_bytes=_integer(row.get("globalMemorySize")),
    )


def _cuda_ordinals(database: sqlite3.Connection, schema: Schema) -> dict[int, int]:
    """GPU id to CUDA ordinal, where all processes agree (CUDA_VISIBLE_DEVICES may part them)."""
    table = schema.get("cuda_devices")
    if table is None:
        return {}
    seen: dict[int, set[int]] = {}
    for row in _rows(database, table):
        gpu, cuda = _integer(row.get("gpuId")), _integer(row.get("cudaId"))
        if gpu is not None and cuda is not None:
            seen.setdefault(gpu, set()).add(cuda)
    return {gpu: cuda.pop() for gpu, cuda in seen.items() if len(cuda) == 1}


def graph_tracing(database: sqlite3.Connection, schema: Schema) -> str | None:
    """``graph`` or ``node``: how kernels inside CUDA graphs were recorded, if it is stated."""
    table = schema.get("capture")
    if table is None:
        return None
    rows = database.execute(
        f"SELECT value FROM {quoted(table.name)} WHERE name LIKE '%CUDA_GRAPH_TRACE_OPTIONS:MODE'"
    )
    modes = {str(value).lower() for (value,) in rows}
    return modes.pop() if len(modes) == 1 else None


def host_tracing(database: sqlite3.Connection, schema: Schema) -> Iterator[Issue]:
    """What was recorded on the CPU side, at a cost of some percent for the host."""
    found = [
        what
        for role, what in (("cpu_samples", "CPU sampling"), ("os_calls", "OS runtime tracing"))
        if (table := schema.get(role)) is not None
        and database.execute(f"SELECT 1 FROM {quoted(table.name)} LIMIT 1").fetchone()
    ]
    if found:
        yield Issue(
            code="host-tracing",
            severity=Severity.INFO,
            what=f"{' and '.join(found)} was on: host gaps are somewhat longer than unobserved",
        )


def diagnostics(database: sqlite3.Connection, schema: Schema) -> Iterator[Issue]:
    """Warnings and errors that nsys itself wrote into the export and that bear on its data."""
    table = schema.get("diagnostics")
    if table is None or not {"severity", "text"} <= set(table.all_columns):
        return
    rows = database.execute(
        f"SELECT severity, text FROM {quoted(table.name)} WHERE severity >= 2 LIMIT 200"
    )
    for _severity, text in rows:
        line = str(text).partition("\n")[0].strip()
        if _TELLING.search(line) and not _ELSEWHERE.search(line):
            yield Issue(code="nsys-says", severity=Severity.WARNING, what=f"nsys says: {line}")


def _rows(database: sqlite3.Connection, table: Table) -> Iterator[dict[str, object]]:
    cursor = database.execute(f"SELECT * FROM {quoted(table.name)}")
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
