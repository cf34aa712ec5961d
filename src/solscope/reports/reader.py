"""What every reader offers, and what they share: opening a file's bytes and its digest."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Protocol

from solscope.errors import ReportError
from solscope.model.report import Report

HEAD_BYTES = 64 * 1024
"""How much of a file decides what it is."""

NEXT_STEP = "give the file that ncu wrote with -o (.ncu-rep), or see `solscope read --help`"

# A text compresses far less than this; more is a bomb or damage.
MAX_EXPANSION = 400
EXPANSION_FLOOR_BYTES = 64 * 1024 * 1024


class Reader(Protocol):
    """A module per format. Content decides, never the suffix."""

    NAME: str

    def recognises(self, head: bytes, path: str) -> bool:
        """Whether a file with these first bytes (at most ``HEAD_BYTES``) is of this format."""
        ...

    def read(self, path: str, data: bytes, sha256: str) -> Report:
        """The file as a report. Raises ReportError where nothing of it can be used."""
        ...


THREAD_FROM_BYTES = 256 * 1024


class Digest:
    """SHA-256 of a file's bytes, computed beside the reading of a large file."""

    def __init__(self, data: bytes) -> None:
        self._hash = hashlib.sha256()
        self._thread: threading.Thread | None = None
        if len(data) >= THREAD_FROM_BYTES:
            # hashlib lets other threads run while it hashes.
            self._thread = threading.Thread(target=self._hash.update, args=(data,))
            self._thread.start()
        else:
            self._hash.update(data)

    def hex(self) -> str:
        """The digest in hex; waits where it is not done."""
        if self._thread is not None:
            self._thread.join()
        return self._hash.hexdigest()


def expansion_limit(size: int) -> int:
    """How many bytes a compressed file of ``size`` bytes may unfold to."""
    return max(size * MAX_EXPANSION, EXPANSION_FLOOR_BYTES)


LOOKALIKES: Mapping[str, tuple[bytes, ...]] = {
    "a Git LFS pointer, not the report itself": (b"version https://git-lfs",),
    "an HTML page": (b"<!doctype html", b"<html", b"<!DOCTYPE html", b"<!DOCTYPE HTML"),
    "a zip archive": (b"PK\x03\x04",),
    "a SQLite database": (b"SQLite format 3\x00",),
    "a PDF document": (b"%PDF-",),
    "an ELF binary": (b"\x7fELF",),
    "an Nsight Systems report (.nsys-rep)": (b"QDSTRM",),
    "a Parquet file": (b"PAR1",),
    "an Arrow or Feather file": (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff"),
    "an HDF5 file": (b"\x89HDF\r\n",),
    "an old Excel workbook (.xls)": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",),
    "a pickle of Python": (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
    "a picture": (b"\x89PNG", b"\xff\xd8\xff"),
}

_NSYS_EXPORT = "export it first: `nsys export -t sqlite FILE`"
_TABLE_EXPORT = (
    "an export of nsys: `nsys export -t sqlite FILE.nsys-rep`; a table of ncu: write it as CSV"
)
LOOKALIKE_HINTS: Mapping[str, str] = {
    "a Git LFS pointer, not the report itself": "fetch the real file with `git lfs pull`",
    "an HTML page": "the download returned a web page; fetch the raw file",
    "an Nsight Systems report (.nsys-rep)": _NSYS_EXPORT,
    "a Parquet file": _TABLE_EXPORT,
    "an Arrow or Feather file": _TABLE_EXPORT,
    "an HDF5 file": _TABLE_EXPORT,
    "an old Excel workbook (.xls)": "give the file as ncu wrote it, or save the sheet as CSV",
}

# Binary data without a mark of its own at its begin, by the end of its file's name.
_BY_SUFFIX: Mapping[str, tuple[tuple[str, ...], str]] = {
    "a report of Nsight Systems": ((".nsys-rep", ".qdrep", ".qdstrm"), _NSYS_EXPORT),
    "a trace of Perfetto": (
        (".pftrace", ".perfetto-trace", ".perfetto"),
        "torch's own trace is JSON: prof.export_chrome_trace('trace.json')",
    ),
    "a profile of pprof": (
        (".pprof", ".pb", ".pb.gz"),
        "export kernel names with their samples as CSV, TSV or JSON",
    ),
}


def refuse_unknown(head: bytes, path: str) -> ReportError:
    """The error for a file that no reader recognises, saying what it looks like."""
    if not head:
        return ReportError(
            "the file is empty",
            where=path,
            hint="the capture wrote nothing; look at its log for the reason",
        )
    for what, magics in LOOKALIKES.items():
        if head.lstrip()[:64].startswith(magics) or head.startswith(magics):
            return ReportError(
                f"this is {what}", where=path, hint=LOOKALIKE_HINTS.get(what, NEXT_STEP)
            )
    if _is_text(head):
        return ReportError("this is text, not a profiler's report", where=path, hint=NEXT_STEP)
    for what, (suffixes, hint) in _BY_SUFFIX.items():
        if path.lower().endswith(suffixes):
            return ReportError(f"this is, by its name, {what}", where=path, hint=hint)
    return ReportError(
        "this is binary data of an unknown kind, not a profiler's report",
        where=path,
        hint=NEXT_STEP,
    )


def _is_text(head: bytes) -> bool:
    sample = head[:4096]
    return b"\x00" not in sample and sum(b < 9 for b in sample) == 0
