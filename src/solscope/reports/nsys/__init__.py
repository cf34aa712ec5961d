"""An export of Nsight Systems to SQLite in, a timeline out.

All generations of the schema from 2021 on; see ``schema.py``. Gzipped exports are unfolded to a
temporary file, because SQLite needs one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

from solscope.errors import ReportError
from solscope.model.finding import Absence, Issue, Severity
from solscope.model.report import Provenance
from solscope.model.trace import TimelineReport
from solscope.reports import missing
from solscope.reports.nsys import facts, schema
from solscope.reports.nsys.columns import Bulk, Columns, Names, read_only_uri
from solscope.reports.unfold import plain_file

NAME = "nsys-sqlite"

MAGIC = b"SQLite format 3\x00"


def recognises(head: bytes, path: str) -> bool:
    """Any SQLite database; `read` says so where nsys did not write it."""
    return head.startswith(MAGIC)


def read(path: str, sha256: str, **options: object) -> TimelineReport:
    """The export as a timeline.

    Raises ReportError for a cut or damaged database, one that nsys did not export, an unknown
    schema version, and a kernel table whose columns are in no known spelling.
    """
    size = os.path.getsize(path)
    _refuse_unmerged(path)
    with plain_file(path) as plain:
        _refuse_cut(plain, path)
        try:
            with closing(sqlite3.connect(read_only_uri(plain), uri=True)) as database:
                database.text_factory = lambda raw: raw.decode("utf-8", "replace")
                return _assemble(database, plain, path, sha256, size)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: SQLite's own messages
            raise ReportError(
                f"the database is damaged: {error}", where=path, hint=schema.HINT
            ) from error
        except ReportError as error:
            if error.where is None:
                error.where = path
            raise


_NO_DEVICES = Absence(
    field="devices",
    reason="the export describes no GPU: names and sizes of the devices are not known",
)


_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_WAL_HEADER_BYTES = 32


def _refuse_unmerged(path: str) -> None:
    """Rows in a write-ahead log are not in the file itself, and a rollback journal says that the
    file is being written or was left half-written. It is read without either, so as never to
    write beside it."""
    beside = os.path.realpath(path)
    log, journal = f"{beside}-wal", f"{beside}-journal"
    if os.path.exists(log) and os.path.getsize(log) > _WAL_HEADER_BYTES:
        raise ReportError(
            f"rows of the database stand in {os.path.basename(log)}, not in the file itself",
            where=path,
            hint=f"merge them first: sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'",
        )
    with suppress(OSError), open(journal, "rb") as file:
        if file.read(8) == _JOURNAL_MAGIC:
            raise ReportError(
                f"the database is being written, or its writing was broken off: there is a "
                f"{os.path.basename(journal)}",
                where=path,
                hint="wait for `nsys export`, or export again",
            )


def _refuse_cut(plain: str, path: str) -> None:
    """SQLite's header states the page size (offset 16) and the number of pages (offset 28)."""
    with open(plain, "rb") as file:
        head = file.read(100)
    if len(head) < 100:
        raise ReportError("the database ends in its header", where=path, hint=schema.HINT)
    page = int.from_bytes(head[16:18], "big")
    page = 65536 if page == 1 else page
    stated = page * int.from_bytes(head[28:32], "big")
    size = os.path.getsize(plain)
    # The count is only kept when the change counter (24) equals the version that wrote it (92).
    if head[24:28] == head[92:96] and size < stated:
        raise ReportError(
            f"the database is cut: {size} of {stated} bytes are here",
            where=path,
            hint="copy the file again, or export again",
        )


def _assemble(
    database: sqlite3.Connection, plain: str, path: str, sha256: str, size: int
) -> TimelineReport:
    found = schema.resolve(database)
    names = facts.strings(database, found)
    bulk = Bulk(plain, found, Names(names))
    kernels, graphs = bulk.kernels(), bulk.graphs()
    copies = bulk.copies(facts.copy_kinds(database, found))
    annotations = bulk.annotations()
    devices = facts.devices(database, found)
    report = TimelineReport(
        provenance=Provenance(
            path=path,
            sha256=sha256,
            size_bytes=size,
            format=NAME,
            tool_name="nsys",
            tool_version=found.product_version,
        ),
        kernels=kernels.table,
        graphs=graphs.table,
        copies=copies.table,
        annotations=annotations.table,
        calls=facts.calls(database, found, names),
        vendor="NVIDIA",
        devices=devices,
        graph_tracing=facts.graph_tracing(database, found),
        issues=(
            *_schema_issues(found),
            *_unusable({"kernel": kernels, "graph": graphs, "copy": copies, "NVTX": annotations}),
            *facts.diagnostics(database, found),
            *facts.host_tracing(database, found),
        ),
        absences=() if devices else (_NO_DEVICES,),
    )
    return _with_missing_kernels(report, "kernels" in found.tables)


def _schema_issues(found: schema.Schema) -> Iterator[Issue]:
    for name in found.suffixed():
        yield Issue(code="table-suffix", severity=Severity.INFO, what=f"{name} used", where=name)
    if found.version is None:
        yield Issue(
            code="no-schema-version",
            severity=Severity.INFO,
            what="the export states no schema version (exports up to 2021); its tables decided",
        )


def _unusable(tables: dict[str, Columns]) -> Iterator[Issue]:
    for what, columns in tables.items():
        if columns.unusable:
            yield Issue(
                code="rows-without-duration",
                severity=Severity.WARNING,
                what=f"{columns.unusable} {what} rows have no begin or end before they begin; "
                "they are left out",
            )


def _with_missing_kernels(report: TimelineReport, has_table: bool) -> TimelineReport:
    """An empty kernel table is never 'no kernels ran' where launches were called."""
    note = missing.graph_note(
        graph_launches=report.graph_launches,
        graph_rows=report.graphs.num_rows,
        graph_kernels=report.kernels.num_rows - report.kernels["graph_node"].null_count,
        kernels=report.kernels.num_rows,
    )
    if report.kernels.num_rows:
        return report if note is None else replace(report, issues=(note, *report.issues))
    issue, absence = missing.explain(
        launches=report.kernel_launches,
        graph_launches=report.graph_launches,
        graph_rows=report.graphs.num_rows,
        said=[issue.what for issue in report.issues if issue.code == "nsys-says"],
        where="the kernel table is empty" if has_table else "the export has no kernel table",
    )
    return replace(report, issues=(issue, *report.issues), absences=(absence, *report.absences))
