"""Content sniffed, reader chosen. One visible line per format."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence

from solscope.errors import ReportError, UsageError
from solscope.model.report import Report
from solscope.reports import ncu_rep, reader

READERS: tuple[reader.Reader, ...] = (ncu_rep,)

GZIP_MAGIC = b"\x1f\x8b"
SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""What a folder is searched for; each may end in ``.gz`` too."""


def read(path: str) -> Report:
    """The report in a file. Content decides, the suffix does not.

    A gzipped file is unfolded first; the digest is that of the file as it lies on disk. Raises
    ReportError with what the file looks like where no reader knows it.
    """
    data = _bytes_of(path)
    sha256 = reader.digest(data)
    plain = _gunzip(data, path) if data.startswith(GZIP_MAGIC) else data
    head = plain[: reader.HEAD_BYTES]
    for candidate in READERS:
        if candidate.recognises(head, path):
            return candidate.read(path, plain, sha256)
    raise reader.refuse_unknown(head, path)


def find(paths: Sequence[str]) -> list[str]:
    """Files named, and those that folders hold (searched whole, sorted), each once.

    Raises UsageError for a path that does not exist, ReportError for a folder without reports.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _expand(path):
            found.setdefault(os.path.realpath(file), file)
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
    elif os.path.exists(path):
        yield path
    else:
        raise UsageError("no such file or folder", where=path, hint="check the path")


def _inside(folder: str) -> Iterator[str]:
    for directory, subdirectories, files in os.walk(folder):
        subdirectories.sort()
        for name in files:
            if name.removesuffix(".gz").endswith(SUFFIXES):
                yield os.path.join(directory, name)


def _bytes_of(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except IsADirectoryError as error:
        raise ReportError("this is a folder", where=path, hint="name a file in it") from error
    except FileNotFoundError as error:
        raise UsageError("no such file", where=path, hint="check the path") from error
    except OSError as error:
        raise ReportError(
            f"cannot be read: {error.strerror}", where=path, hint="check its permissions"
        ) from error


def _gunzip(data: bytes, path: str) -> bytes:
    limit = reader.expansion_limit(len(data))
    engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = engine.decompress(data, limit)
    except zlib.error as error:
        raise ReportError(
            f"the gzip data is damaged: {error}", where=path, hint="copy the file again"
        ) from error
    if engine.unconsumed_tail:
        raise ReportError(
            f"the gzip data unfolds to more than {limit} bytes",
            where=path,
            hint="the file is damaged, or not a report",
        )
    return plain  # where the gzip data itself was cut, its reader says that the report is cut
