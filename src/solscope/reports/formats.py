"""Content sniffed, reader chosen. One visible line per format."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from types import ModuleType

from solscope.errors import ReportError, UsageError
from solscope.model.reading import FileReading
from solscope.model.report import Report
from solscope.model.trace import SampleReport, TimelineReport
from solscope.reports import lookalikes, reader

AnyReport = Report | TimelineReport | SampleReport

COUNTERS = ("ncu-rep", "ncu-csv", "ncu-text")
"""Formats that hold counters; their files fit in memory. The others are read from the path."""


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
"""What a folder is searched for; each may end in ``.gz`` too."""

LIVE = ("clickhouse://", "clickhouses://")
"""How the address of a live query begins."""


def read(path: str, *, locale: str | None = None, columns: str | None = None) -> AnyReport:
    """What a file holds. Content decides, the suffix does not.

    A gzipped file is unfolded; the digest is that of the file as it lies on disk. ``locale`` and
    ``columns`` go to the readers that need them. Raises ReportError, with what the file looks
    like where no reader knows it.
    """
    if path.startswith(LIVE):
        from solscope.reports import zymtrace

        return zymtrace.read(path, "", columns=columns)
    chosen = _choose(_head(path), path)
    if chosen.NAME not in COUNTERS:
        given = {} if columns is None else {"columns": columns}
        return chosen.read(path, _digest(path), **given)  # type: ignore[no-any-return]
    data = _bytes_of(path)
    sha256 = reader.digest(data)
    plain = _gunzip(data, path) if data.startswith(GZIP_MAGIC) else data
    options = {} if chosen.NAME == "ncu-rep" else {"locale": locale}
    return chosen.read(path, plain, sha256, **options)  # type: ignore[no-any-return]


def explain(path: str, *, locale: str | None = None, columns: str | None = None) -> FileReading:
    """How a printed table was understood, column by column. Raises as ``read`` does."""
    chosen = _choose(_head(path), path)
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


def _choose(head: bytes, path: str) -> ModuleType:
    for candidate in readers():
        if candidate.recognises(head, path):
            return candidate
    if len(head) == reader.HEAD_BYTES:
        # A server's log can precede the table that ncu printed into it.
        data = _bytes_of(path)
        whole = _gunzip(data, path) if data.startswith(GZIP_MAGIC) else data
        for candidate in readers():
            if candidate.NAME in COUNTERS and candidate.recognises(whole, path):
                return candidate
    found = lookalikes.name_of(head, path)
    if found is not None:
        raise ReportError(f"this is {found.what}", where=path, hint=found.hint)
    raise reader.refuse_unknown(head, path)


def _head(path: str) -> bytes:
    data = _bytes_of(path, reader.HEAD_BYTES)
    if not data.startswith(GZIP_MAGIC):
        return data
    engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        return engine.decompress(data, reader.HEAD_BYTES)
    except zlib.error as error:
        raise _damaged(path, error) from error


def find(paths: Sequence[str]) -> list[str]:
    """Files named, and those that folders hold (searched whole, sorted), each once.

    Raises UsageError for a path that does not exist, ReportError for a folder without reports.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _expand(path):
            is_live = file.startswith(LIVE)
            found.setdefault(file if is_live else os.path.realpath(file), file)
    return list(found.values())


def _expand(path: str) -> Iterator[str]:
    if os.path.isdir(path):
        files = sorted(_inside(path))
        if not files:
            raise ReportError(
                "no report in this folder",
                where=path,
                hint=f"reports end in {', '.join(SUFFIXES)}; name a file of another suffix itself",
            )
        yield from files
    elif os.path.exists(path) or path.startswith(LIVE):
        yield path
    else:
        raise UsageError("no such file or folder", where=path, hint="check the path")


def _inside(folder: str) -> Iterator[str]:
    for directory, subdirectories, files in os.walk(folder):
        subdirectories.sort()
        for name in files:
            if name.removesuffix(".gz").endswith(SUFFIXES):
                yield os.path.join(directory, name)


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
    limit = reader.expansion_limit(len(data))
    engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = engine.decompress(data, limit)
    except zlib.error as error:
        raise _damaged(path, error) from error
    if engine.unconsumed_tail:
        raise ReportError(
            f"the gzip data unfolds to more than {limit} bytes",
            where=path,
            hint="the file is damaged, or not a report",
        )
    return plain  # where the gzip data itself was cut, its reader says that the report is cut


def _damaged(path: str, error: zlib.error) -> ReportError:
    return ReportError(f"the gzip data is damaged: {error}", where=path, hint="copy the file again")
