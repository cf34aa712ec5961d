"""Texts that lie where a report should, named for what they are. Reads no report.

Asked only when no reader recognised the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

from solscope.reports.lookalikes import tools
from solscope.reports.printed.encoding import decode_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookalike:
    """What a file is instead of a report, and what to do about it."""

    kind: str
    what: str
    hint: str


_EXPORT = "export the report: ncu --import REPORT --csv --page raw --print-units base"
_NCU_LINE = re.compile(r"^==(PROF|WARNING|ERROR)== ", re.MULTILINE)
_NO_KERNELS = "No kernels were profiled"
_OTHER_TOOLS = (
    ("nvprof output", re.compile(r"^==\d+== (NVPROF|Profiling)", re.MULTILINE)),
    ("a compute-sanitizer log", re.compile(r"^=========? (COMPUTE-SANITIZER|CUDA-MEMCHECK)")),
    ("an nsys log", re.compile(r"^(Generating|Processing|Collecting) .*\.(nsys-rep|qdrep|sqlite)")),
)
_METRIC = re.compile(r"[a-z0-9]+__[a-z0-9_]+(?:\.[a-z_]+)*")
_LABELS = frozenset(
    (
        "Duration",
        "DRAM Throughput",
        "DRAM Frequency",
        "Memory Throughput",
        "Compute (SM) Throughput",
        "Elapsed Cycles",
        "Achieved Occupancy",
    )
)
_HTML = re.compile(r"\s*<(?:!doctype html|html|head|body|table|div|style)\b", re.IGNORECASE)
_DIMENSIONS = re.compile(r"\(\d+, \d+, \d+\)")
_TIME_COLUMN = re.compile(r"[\w ]+ \((ns|us|ms|s|[num]?sec)\)")
_MENTIONS = re.compile(r"\b(?:ncu|nsight compute)\b", re.IGNORECASE)


def name_of(head: bytes, path: str) -> Lookalike | None:
    """What the file is, by its first bytes; ``None`` where nothing is known about it."""
    if not head.strip():
        return Lookalike(kind="empty", what="an empty file", hint="capture or export again")
    text = decode_head(head)
    for judge in (
        _pointer,
        _page,
        _listing,
        _log,
        _tools,
        _headless,
        _nsys_table,
        _derived_table,
        _mention,
    ):
        found = judge(text)
        if found is not None:
            return found
    return None


def _pointer(text: str) -> Lookalike | None:
    if not text.startswith("version https://git-lfs"):
        return None
    return Lookalike(
        kind="lfs-pointer",
        what="a Git LFS pointer, not the file itself",
        hint="fetch the real file with `git lfs pull`",
    )


def _page(text: str) -> Lookalike | None:
    if _HTML.match(text) is None:
        return None
    return Lookalike(
        kind="html",
        what="an HTML page",
        hint="a download returned a page: fetch the raw file; a table: write it as CSV",
    )


def _listing(text: str) -> Lookalike | None:
    first = text.lstrip("\ufeff \r\n")
    if "Nsight Compute Command Line Profiler" in first[:200] and "Version" in first[:400]:
        return Lookalike(kind="ncu-version", what="the output of ncu --version", hint=_EXPORT)
    if re.search(r"^Identifier\s+Display Name\s", first, re.MULTILINE):
        return Lookalike(
            kind="ncu-listing", what="a list of ncu's sections or sets, no report", hint=_EXPORT
        )
    if re.search(r"^Device .*\(\w+\)\n-+", first) or re.search(r"^Metric Name\s+Metric", first):
        return Lookalike(
            kind="ncu-listing", what="a list of metric names of a chip, no report", hint=_EXPORT
        )
    return None


def _tools(text: str) -> Lookalike | None:
    found = tools.name_of(text)
    return None if found is None else Lookalike(kind="other-tool", what=found[0], hint=found[1])


def _log(text: str) -> Lookalike | None:
    for what, mark in _OTHER_TOOLS:
        if mark.search(text):
            return Lookalike(
                kind="other-log", what=what, hint="give the report that the tool wrote beside it"
            )
    if not _NCU_LINE.search(text):
        return None
    what = "what ncu printed while it ran, without any table"
    if _NO_KERNELS in text:
        what += "; no kernel matched, or the lines above say what went wrong before"
    return Lookalike(
        kind="ncu-log",
        what=what,
        hint="`solscope diagnose` reads a log; a report is what ncu writes with -o",
    )


def _headless(text: str) -> Lookalike | None:
    """Rows of ncu begin with two numbers and hold the dimensions of a launch."""
    rows = [row for row in _rows(text.lstrip("\ufeff").splitlines()[:40]) if len(row) > 7]
    rows = [row for row in rows if any(cell.strip() for cell in row[:2])]  # no row of units
    if not rows or not all(cell.strip().isdecimal() for cell in rows[0][:2]):
        return None
    if not any(_DIMENSIONS.fullmatch(cell.strip()) for cell in rows[0]):
        return None
    return Lookalike(
        kind="headless-table",
        what="rows of a table of ncu without the header above them",
        hint='give the file from its header on (the line that begins with "ID")',
    )


def _nsys_table(text: str) -> Lookalike | None:
    """A table of nsys about something else; its reader takes those of kernels."""
    for row in _rows(text.lstrip("\ufeff").splitlines()[:40]):
        if (
            len(row) > 2
            and sum(_TIME_COLUMN.fullmatch(cell.strip()) is not None for cell in row) > 1
        ):
            return Lookalike(
                kind="nsys-table",
                what="a table of nsys stats that is not read (cuda_gpu_kern_sum, cuda_gpu_sum, "
                "cuda_gpu_trace and cuda_api_sum are), with the columns "
                + ", ".join(cell.strip() for cell in row[:8]),
                hint="write it again: `nsys stats --report cuda_gpu_kern_sum --format csv "
                "FILE.nsys-rep`",
            )
    return None


def _derived_table(text: str) -> Lookalike | None:
    lines = text.lstrip("\ufeff").splitlines()[:40]
    rows = [row for row in _rows(lines) if row]
    if len(rows) < 2 or len(rows[0]) < 2:
        return None
    cells = {cell.strip() for row in rows for cell in row}
    names = [cell for cell in cells if _METRIC.match(cell)]
    if not names and not (_LABELS & cells):
        return None
    return Lookalike(
        kind="derived-table",
        what="a table that somebody computed from ncu's output, with columns of its own",
        hint=f"its units and sums cannot be known; {_EXPORT}",
    )


def _rows(lines: Sequence[str]) -> list[list[str]]:
    try:
        return list(csv.reader(lines))
    except csv.Error:
        return []


def _mention(text: str) -> Lookalike | None:
    if "\0" in text or not _MENTIONS.search(text):
        return None
    return Lookalike(
        kind="ncu-log",
        what="a text about a run of ncu, without any table of it",
        hint="give the report or the CSV that the run wrote",
    )
