"""Bytes of a ``.ncu-rep``, ``.ncu-repz`` or 2019 ``.nsight-cuprof-report`` in, Report out.

The container is an append log (format facts: NVIDIA's ``extras/FileFormat`` documentation and
real files of 2019 to 2026): a magic, a file header, then blocks of header and payload. Blocks
are length-prefixed, nothing is checksummed, and nothing marks the end: a file cut exactly
between two results is a smaller valid file. What shows a cut is said by ``container``.
"""

from __future__ import annotations

from solscope.errors import ReportError
from solscope.model.report import Report
from solscope.reports.ncu_rep import assembly, container

NAME = "ncu-rep"

__all__ = ["NAME", "read", "recognises"]


def recognises(head: bytes, path: str) -> bool:
    """Whether the bytes begin a report, plain or in a zstd frame."""
    return head.startswith((container.MAGIC, container.ZSTD_MAGIC)) or (
        0 < len(head) < len(container.MAGIC) and container.MAGIC.startswith(head)
    )


def read(path: str, data: bytes, sha256: str) -> Report:
    """The report in ``data``.

    A report cut in mid-block is returned with its complete blocks, ``complete=False`` and an
    issue. Raises ReportError where the file holds no usable block at all.
    """
    plain, format_name, issues = container.unfold(data, path)
    scan = container.scan(plain, path)
    if not scan.blocks and not scan.is_cut:
        raise ReportError(
            "the report has a header and nothing else",
            where=path,
            hint="the profiler ended before it wrote a result; look at its log",
        )
    return assembly.assemble(
        scan,
        path=path,
        sha256=sha256,
        size=len(data),
        format_name=format_name,
        issues=[*issues, *scan.issues],
    )
