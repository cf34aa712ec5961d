"""Which table and which column of an export holds what, over all generations of the schema.

NVIDIA keeps no promise about this schema. What varied so far: suffixes on table names (_V2),
tables renamed (EXPORT_META_DATA up to 2021, META_DATA_EXPORT since), optional tables that are
simply not there, columns added. Names are therefore resolved, never assumed.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from solscope.errors import ReportError

NEWEST_MAJOR = 3
"""The newest major version of the export schema that real files were read with (3.25.0)."""

HINT = "export again with the nsys that captured: `nsys export -t sqlite --force-overwrite true`"

TABLES = {
    "kernels": ("CUPTI_ACTIVITY_KIND_KERNEL",),
    "graphs": ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",),
    "memcpy": ("CUPTI_ACTIVITY_KIND_MEMCPY",),
    "memset": ("CUPTI_ACTIVITY_KIND_MEMSET",),
    "calls": ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"),
    "nvtx": ("NVTX_EVENTS",),
    "strings": ("StringIds",),
    "gpus": ("TARGET_INFO_GPU",),
    "old_gpus": ("TARGET_INFO_CUDA_GPU",),
    "cuda_devices": ("TARGET_INFO_CUDA_DEVICE",),
    "export": ("META_DATA_EXPORT", "EXPORT_META_DATA"),
    "capture": ("META_DATA_CAPTURE",),
    "diagnostics": ("DIAGNOSTIC_EVENT",),
    "copy_kinds": ("ENUM_CUDA_MEMCPY_OPER",),
    "cpu_samples": ("COMPOSITE_EVENTS",),
    "os_calls": ("OSRT_API",),
}

COLUMNS = {
    "start": ("start", "startNs", "start_ns"),
    "end": ("end", "endNs", "end_ns"),
    "device": ("deviceId", "device"),
    "stream": ("streamId", "stream"),
    "process": ("globalPid", "globalTid"),
    "correlation": ("correlationId", "correlation"),
    "name": ("demangledName", "nameId", "name", "shortName"),
    "short": ("shortName",),
    "graph_node": ("graphNodeId",),
    "graph": ("graphId", "graphExecId"),
    "bytes": ("bytes",),
    "kind": ("copyKind",),
    "text": ("text",),
    "text_id": ("textId",),
    "event": ("eventType",),
    "owner": ("globalTid", "globalPid"),
    "thread": ("globalTid",),
    **{
        f"{what}_{axis.lower()}": (f"{what}{axis}",) for what in ("grid", "block") for axis in "XYZ"
    },
}

NAMING = ("name", "short")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is there, with its columns by what they hold."""

    name: str
    columns: dict[str, str]
    all_columns: tuple[str, ...]
    text_columns: frozenset[str] = frozenset()
    last_row: int | None = None

    def need(self, *roles: str) -> None:
        """Raises ReportError where a column is in no known spelling."""
        missing = [role for role in roles if role not in self.columns]
        if missing:
            raise ReportError(
                f"table {self.name} has no column for {', '.join(missing)} in a known spelling; "
                f"it has {', '.join(self.all_columns[:12])}",
                hint=HINT,
            )


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one export, and its versions as it states them."""

    tables: dict[str, Table]
    version: str | None
    product_version: str | None

    def get(self, role: str) -> Table | None:
        """The table of a role, ``None`` where the export has none."""
        return self.tables.get(role)

    def suffixed(self) -> list[str]:
        """Tables that were found under another name than the plain one."""
        return [t.name for role, t in self.tables.items() if t.name not in TABLES[role]]


def resolve(database: sqlite3.Connection) -> Schema:
    """Find out what the export holds.

    Raises ReportError for a database that is no export of nsys, for one of nvprof, and for a
    major version that is not known.
    """
    rows = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    names = [str(name) for (name,) in rows]
    _refuse_foreign(names)
    tables = {}
    for role, bases in TABLES.items():
        found = _find(names, bases)
        if found is not None:
            tables[role] = _table(database, found)
    facts = _facts(database, tables.get("export"))
    version = facts.get("EXPORT_SCHEMA_VERSION")
    _refuse_unknown(version)
    return Schema(
        tables=tables, version=version, product_version=facts.get("EXPORT_PRODUCT_VERSION")
    )


def _refuse_foreign(names: list[str]) -> None:
    known = {name.upper() for name in names}
    if "STRINGTABLE" in known and "STRINGIDS" not in known:
        raise ReportError(
            "this is a database of nvprof, not an export of nsys",
            hint="nvprof ended with CUDA 12; capture again with nsys",
        )
    marks = ("CUPTI_ACTIVITY_KIND_", "TARGET_INFO_", "NVTX_EVENTS", "META_DATA_EXPORT")
    if not any(name.startswith(marks) for name in known):
        raise ReportError(
            "a SQLite database that nsys did not export; its tables are "
            + (", ".join(names[:6]) or "none"),
            hint="give the file that `nsys export -t sqlite` wrote",
        )


def _find(names: list[str], bases: tuple[str, ...]) -> str | None:
    """The table of the highest version among the spellings of a name."""
    best: tuple[int, str] | None = None
    for base in bases:
        pattern = re.compile(rf"{re.escape(base)}(?:_V(\d+))?", re.IGNORECASE)
        for name in names:
            match = pattern.fullmatch(name)
            if match and (best is None or int(match[1] or 1) > best[0]):
                best = (int(match[1] or 1), name)
    return None if best is None else best[1]


def _table(database: sqlite3.Connection, name: str) -> Table:
    columns = tuple(str(row[1]) for row in database.execute(f"PRAGMA table_info({quoted(name)})"))
    by_lower = {column.lower(): column for column in columns}
    roles = {}
    for role, spellings in COLUMNS.items():
        for spelling in spellings:
            if spelling.lower() in by_lower:
                roles[role] = by_lower[spelling.lower()]
                break
    text = frozenset(
        role for role in NAMING if role in roles and _is_text(database, name, roles[role])
    )
    return Table(
        name=name,
        columns=roles,
        all_columns=columns,
        text_columns=text,
        last_row=_last_row(database, name),
    )


def _last_row(database: sqlite3.Connection, table: str) -> int | None:
    """The largest row id; ``None`` for an empty table and for one without row ids."""
    try:
        (last,) = database.execute(f"SELECT MAX(rowid) FROM {quoted(table)}").fetchone()
    except sqlite3.OperationalError:
        return None  # a view, or WITHOUT ROWID
    return last if isinstance(last, int) else None


def _is_text(database: sqlite3.Connection, table: str, column: str) -> bool:
    """Whether a name column holds names themselves rather than ids of StringIds."""
    rows = database.execute(
        f"SELECT typeof({quoted(column)}) FROM {quoted(table)} "
        f"WHERE {quoted(column)} IS NOT NULL LIMIT 1"
    )
    return bool(rows.fetchone() == ("text",))


def _facts(database: sqlite3.Connection, table: Table | None) -> dict[str, str]:
    if table is None or not {"name", "value"} <= {c.lower() for c in table.all_columns}:
        return {}
    rows = database.execute(f"SELECT name, value FROM {quoted(table.name)}")
    return {str(name): str(value) for name, value in rows}


def _refuse_unknown(version: str | None) -> None:
    if version is None:
        return
    major = version.partition(".")[0]
    if not major.isdigit() or int(major) > NEWEST_MAJOR:
        raise ReportError(
            f"export schema version {version} is not known; the newest known is {NEWEST_MAJOR}.x",
            hint="read the CSV of `nsys stats` instead, or update solscope",
        )


def quoted(name: str) -> str:
    """An identifier, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'
