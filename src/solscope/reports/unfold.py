"""Files that may be gzipped, as plain bytes or as a plain file for as long as it is read."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from solscope.errors import ReportError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 1 << 20

# A database compresses some ten times; far more is a bomb or damage.
MAX_EXPANSION = 400
EXPANSION_FLOOR_BYTES = 64 << 20


@contextmanager
def plain_file(path: str) -> Iterator[str]:
    """The path itself, or that of an unfolded copy that is removed afterwards.

    Raises ReportError where the gzip data is damaged, cut, or unfolds beyond measure.
    """
    with open(path, "rb") as file:
        is_gzip = file.read(2) == GZIP_MAGIC
    if not is_gzip:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="solscope-") as folder:
        target = os.path.join(folder, "export.sqlite")
        _unfold(path, target)
        yield target


def plain_bytes(path: str) -> bytes:
    """The whole file, unfolded where it is gzipped. Raises as :func:`plain_file` does."""
    with open(path, "rb") as file:
        if file.read(2) != GZIP_MAGIC:
            file.seek(0)
            return file.read()
    return b"".join(_pieces(path))


def _unfold(path: str, target: str) -> None:
    with open(target, "wb") as plain:
        for piece in _pieces(path):
            plain.write(piece)


def _pieces(path: str) -> Iterator[bytes]:
    limit = max(os.path.getsize(path) * MAX_EXPANSION, EXPANSION_FLOOR_BYTES)
    seen = 0
    try:
        with gzip.open(path) as packed:
            while piece := packed.read(CHUNK_BYTES):
                seen += len(piece)
                if seen > limit:
                    raise ReportError(
                        f"the gzip data unfolds to more than {limit} bytes",
                        where=path,
                        hint="the file is damaged, or not a report",
                    )
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ReportError(
            f"the gzip data is cut or damaged: {error}", where=path, hint="copy the file again"
        ) from error
