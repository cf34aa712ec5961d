"""Content sniffed, reader chosen. One visible line per format."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType

from solscope.errors import ReportError, SolscopeError, UsageError
from solscope.model.reading import FileReading
from solscope.model.report import Report
from solscope.model.trace import SampleReport, TimelineReport
from solscope.reports import lookalikes, reader, unfold
from solscope.reports.printed.encoding import decode_head

AnyReport = Report | TimelineReport | SampleReport

PRINTED = ("ncu-csv", "ncu-text")
"""What ncu printed of a report."""

COUNTERS = ("ncu-rep", *PRINTED)
"""Formats that hold counters; their files fit in memory. The others are read from the path."""

IN_LOGS = (*PRINTED, "nsys-stats")
"""Tables that stand in a log, however long it is."""

TIMELINES = ("nsys-sqlite", "nsys-stats", "torch-trace")
"""Formats that hold times."""

ANY = (*COUNTERS, *TIMELINES, "kernel-samples")


def readers() -> Iterator[ModuleType]:
    """The readers, in the order in which they are asked: magic numbers before headers, headers
    before mere column names. Each is loaded when its turn comes."""
    from solscope.reports import ncu_rep

    yield ncu_rep
    from solscope.reports import nsys

    yield nsys
    from solscope.reports import kineto

    yield kineto
    from solscope.reports import ncu_csv

    yield ncu_csv
    from solscope.reports import ncu_text

    yield ncu_text
    from solscope.reports import nsys_stats

    yield nsys_stats
    from solscope.reports import zymtrace

    yield zymtrace


GZIP_MAGIC = b"\x1f\x8b"
SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""How reports of ncu end; each may end in ``.gz`` too."""

_JSON = re.compile(rb'\s*[\[{](?!"log":)')
"""A list or an object: what its first bytes do not show, the others will not. The lines of a
container's log are objects, too, but each holds one line of what was printed."""

LIVE = ("clickhouse://", "clickhouses://")
"""How the address of a live query begins."""


def read(path: str, *, locale: str | None = None, columns: str | None = None) -> AnyReport:
    """What a file holds. Content decides, the suffix does not.

    A compressed file is unfolded, and ``-`` is standard input; the digest is that of the file as
    it lies on disk. ``locale`` and ``columns`` go to the readers that need them. Raises
    ReportError, with what the file looks like where no reader knows it.
    """
    if path.startswith(LIVE):
        from solscope.reports import zymtrace

        return zymtrace.read(path, "", columns=columns)
    with unfold.on_disk(path) as held, _named(held, path):
        report = _read(held, locale, columns)
        if held == _title(path):
            return report
        source = replace(report.provenance, path=_title(path))
        if os.path.isfile(path):
            source = replace(source, sha256=_digest(path), size_bytes=os.path.getsize(path))
        return replace(report, provenance=source)


def _title(path: str) -> str:
    """What the file is called in pages. A name that is no UTF-8 cannot stand in JSON as it is."""
    if path == unfold.STDIN:
        return "standard input"
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextmanager
def _named(held: str, path: str) -> Iterator[None]:
    """Errors name the file, also where a copy of it was read."""
    try:
        yield
    except SolscopeError as error:
        error.where = (error.where or held).replace(held, _title(path))
        raise


def _read(path: str, locale: str | None, columns: str | None) -> AnyReport:
    chosen = _choose(_head(path), path, columns)
    if chosen.NAME not in COUNTERS:
        given = {} if columns is None else {"columns": columns}
        if locale is not None:
            given["locale"] = locale
        return chosen.read(path, _digest(path), **given)  # type: ignore[no-any-return]
    data = _bytes_of(path)
    digest = reader.Digest(data)
    plain = _gunzip(data, path) if data.startswith(GZIP_MAGIC) else data
    options = {} if chosen.NAME == "ncu-rep" else {"locale": locale}
    report: Report = chosen.read(path, plain, "", **options)
    return replace(
        report, provenance=replace(report.provenance, sha256=digest.hex(), size_bytes=len(data))
    )


def explain(path: str, *, locale: str | None = None, columns: str | None = None) -> FileReading:
    """How a printed table was understood, column by column. Raises as ``read`` does."""
    with unfold.on_disk(path) as held, _named(held, path):
        return replace(_explain(held, locale, columns), path=_title(path))


def _explain(path: str, locale: str | None, columns: str | None) -> FileReading:
    chosen = _choose(_head(path), path, columns)
    if not hasattr(chosen, "explain"):
        raise UsageError(
            "only printed tables (CSV or text) have columns to explain",
            where=path,
            hint=f"this is {chosen.NAME}; `solscope read` shows what it holds",
        )
    data = _bytes_of(path)
    plain = _gunzip(data, path) if data.startswith(GZIP_MAGIC) else data
    mapping = {} if columns is None or chosen.NAME in COUNTERS else {"columns": columns}
    found: FileReading = chosen.explain(path, plain, locale=locale, **mapping)
    return found


def kind_of(path: str) -> str:
    """The name of the format that a file's first bytes show. Raises as ``read`` does."""
    return str(_choose(_head(path), path).NAME)


def _choose(head: bytes, path: str, columns: str | None = None) -> ModuleType:
    for candidate in readers():
        if candidate.recognises(head, path):
            return candidate
    if len(head) == reader.HEAD_BYTES and "\0" not in decode_head(head) and not _JSON.match(head):
        # A server's log can precede the table that a profiler printed in it. What is no text is not
        # read whole: it may be of any size.
        data = _bytes_of(path)
        whole = _gunzip(data, path) if data.startswith(GZIP_MAGIC) else data
        for candidate in readers():
            if candidate.NAME in IN_LOGS and candidate.recognises(whole, path):
                return candidate
    if columns is not None:
        from solscope.reports import zymtrace

        return zymtrace  # a table that the user says how to read
    found = lookalikes.name_of(head, path)
    if found is not None:
        raise ReportError(f"this is {found.what}", where=path, hint=found.hint)
    raise _table_of_somebody(head, path) or reader.refuse_unknown(head, path)


def _table_of_somebody(head: bytes, path: str) -> ReportError | None:
    """The error for a table none of whose columns is known, which ``--columns`` can name."""
    from solscope.reports.zymtrace import columns, rows

    lines = head.rpartition(b"\n")[0] or head
    found = None if b"\0" in head else rows.parse(lines)
    if found is None or not found.cells:
        return None
    return ReportError(
        f"this is a table, but none of its columns says kernels and samples: "
        f"{', '.join(found.titles[:8])}",
        where=path,
        hint=f"if it holds shares of kernels, {columns.HINT}",
    )


def _head(path: str) -> bytes:
    _bytes_of(path, 1)  # says what is wrong with the path
    return unfold.plain_head(path, reader.HEAD_BYTES)


def find(
    paths: Sequence[str], kinds: Collection[str] = ANY, *, left_out: list[str] | None = None
) -> list[str]:
    """Files named, and those of these kinds that folders hold (searched whole, sorted), each once.

    Content tells the kind of a folder's files. Pages that ncu printed count only where a folder
    holds no report of ncu: beside one they are mostly its own print. These are added to
    ``left_out``. Hidden folders are not searched. Raises UsageError for a path that does not
    exist, ReportError for a folder without such files.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _expand(path, kinds, [] if left_out is None else left_out):
            is_plain = os.path.isfile(file)
            found.setdefault(os.path.realpath(file) if is_plain else file, file)
    return list(found.values())


def _expand(path: str, kinds: Collection[str], left_out: list[str]) -> Iterator[str]:
    if os.path.isdir(path):
        yield from _inside(path, kinds, left_out)
    elif path == unfold.STDIN or os.path.exists(path) or path.startswith(LIVE):
        yield path
    else:
        raise UsageError("no such file or folder", where=path, hint="check the path")


def _inside(folder: str, kinds: Collection[str], left_out: list[str]) -> list[str]:
    files = {file: _kind_at_a_glance(file) for file in _walk(folder)}
    has_report = "ncu-rep" in files.values()
    fitting = [file for file, kind in files.items() if kind in kinds]
    pages = [file for file in fitting if has_report and files[file] in PRINTED]
    left_out += pages
    wanted = [file for file in fitting if file not in pages]
    if wanted:
        return wanted
    others = Counter(kind for kind in files.values() if kind is not None)
    held = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
    raise ReportError(
        "no report in this folder that can be used here" if held else "no report in this folder",
        where=folder,
        hint=f"it holds {held}, which `solscope read` shows; needed: {', '.join(kinds)}"
        if held
        else "name a file itself, and it is said what it is",
    )


def _walk(folder: str) -> Iterator[str]:
    for directory, subdirectories, files in os.walk(folder):
        subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
        for name in sorted(files):
            yield os.path.join(directory, name)


def _kind_at_a_glance(path: str) -> str | None:
    """The format by a file's first bytes alone; by its suffix where ncu's own is on it, so that
    a damaged report is met and named."""
    if path.removesuffix(".gz").endswith(SUFFIXES):
        return "ncu-rep"
    if not os.path.isfile(path):
        return None
    try:
        head = _head(path)
    except ReportError:
        return None
    return next((str(one.NAME) for one in readers() if one.recognises(head, path)), None)


def _bytes_of(path: str, most: int = -1) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except IsADirectoryError as error:
        raise ReportError("this is a folder", where=path, hint="name a file in it") from error
    except FileNotFoundError as error:
        raise UsageError("no such file", where=path, hint="check the path") from error
    except OSError as error:
        raise ReportError(
            f"cannot be read: {error.strerror}", where=path, hint="check its permissions"
        ) from error


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _gunzip(data: bytes, path: str) -> bytes:
    """All members: people append gzipped files to each other as they do plain ones."""
    limit = reader.expansion_limit(len(data))
    parts: list[bytes] = []
    seen, packed = 0, data
    while packed.startswith(GZIP_MAGIC):
        engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            parts.append(engine.decompress(packed, limit - seen + 1))
        except zlib.error as error:
            raise _damaged(path, error) from error
        seen += len(parts[-1])
        if seen > limit:
            raise ReportError(
                f"the gzip data unfolds to more than {limit} bytes",
                where=path,
                hint="the file is damaged, or not a report",
            )
        packed = engine.unused_data
    return b"".join(parts)  # where the gzip data was cut, its reader says that the report is cut


def _damaged(path: str, error: zlib.error) -> ReportError:
    return ReportError(f"the gzip data is damaged: {error}", where=path, hint="copy the file again")
