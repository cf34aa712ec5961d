"""Files as they arrive (compressed, or through a pipe), as plain bytes or as a plain file for as
long as it is read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from solscope.errors import ReportError
from solscope.reports import reader

STDIN = "-"
"""The path that means what is piped in."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
CHUNK_BYTES = 1 << 20

_MAGICS = {
    "gzip": GZIP_MAGIC,
    "zstd": ZSTD_MAGIC,
    "xz": b"\xfd7zXZ\x00",
    "bzip2": b"BZh",
    "zip": b"PK\x03\x04",
}
_BZIP2_BLOCK = b"1AY&SY"  # what follows the level; "BZh" alone may begin a text
_NCU_REP = b"NVR\x00"
_ENCRYPTED = 1
"""The bit of a zip member's flags that says so."""

_DOCUMENTS = {
    "xl/workbook.xml": "an Excel workbook (.xlsx)",
    "xl/workbook.bin": "an Excel workbook (.xlsb)",
    "content.xml": "an OpenDocument sheet (.ods)",
    "Index/Document.iwa": "a Numbers sheet",
}
"""Archives that are documents, by a member that each has."""

_DOCUMENT_HINT = (
    "give what the profiler wrote: a spreadsheet takes numbers and dates by its own locale, and "
    "what it changed cannot be told"
)


def packing_of(head: bytes) -> str | None:
    """How a file with these first bytes is compressed; ``None`` where it is not."""
    for name, magic in _MAGICS.items():
        if head.startswith(magic) and (name != "bzip2" or head[4:10] == _BZIP2_BLOCK):
            return name
    return None


@contextmanager
def on_disk(path: str) -> Iterator[str]:
    """The path itself where the readers take the file as it is; else that of a plain copy, removed
    afterwards: of a pipe, of standard input (``-``), of a file in zstd, xz, bzip2 or zip.

    The readers open a file several times, which a pipe does not bear. Raises ReportError for
    compressed data that is damaged, cut, or of several files.
    """
    is_stream = path == STDIN or (os.path.exists(path) and not _is_file_or_folder(path))
    if not is_stream and not _needs_unpacking(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="solscope-") as folder:
        held = path
        if is_stream:
            held = os.path.join(folder, "piped")
            _keep(path, held)
        if _needs_unpacking(held):
            target = os.path.join(folder, "plain")
            _unfold(held, target, where=path)
            held = target
        yield held


def _is_file_or_folder(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path)


def _keep(path: str, target: str) -> None:
    with open(target, "wb") as kept:
        if path == STDIN:
            shutil.copyfileobj(sys.stdin.buffer, kept)
        else:
            with open(path, "rb") as pipe:
                shutil.copyfileobj(pipe, kept)


def _needs_unpacking(path: str) -> bool:
    """Whether the file is compressed in a way that no reader takes. They take gzip, and that of
    ncu a zstd frame of its own. What cannot be opened is the readers' to say."""
    with suppress(OSError), open(path, "rb") as file:
        packing = packing_of(file.read(16))
        if packing != "zstd":
            return packing not in (None, "gzip")
        import zstandard

        file.seek(0)
        with suppress(zstandard.ZstdError):
            head = zstandard.ZstdDecompressor().stream_reader(file).read(len(_NCU_REP))
            return bool(head) and not head.startswith(_NCU_REP)
    return False


@contextmanager
def plain_file(path: str) -> Iterator[str]:
    """The path itself, or that of an unfolded copy that is removed afterwards.

    Raises ReportError where the compressed data is damaged, cut, or unfolds beyond measure.
    """
    with open(path, "rb") as file:
        is_plain = packing_of(file.read(16)) is None
    if is_plain:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="solscope-") as folder:
        target = os.path.join(folder, "export.sqlite")
        _unfold(path, target, where=path)
        yield target


def plain_bytes(path: str) -> bytes:
    """The whole file, unfolded where it is compressed. Raises as :func:`plain_file` does."""
    with open(path, "rb") as file:
        if packing_of(file.read(16)) is None:
            file.seek(0)
            return file.read()
    return b"".join(_pieces(path, path))


def plain_head(path: str, size: int) -> bytes:
    """The first bytes, unfolded as far as that goes: what is cut or damaged is the readers' to
    say."""
    with open(path, "rb") as file:
        head = file.read(size)
    packing = packing_of(head)
    if packing is None:
        return head
    found = b""
    pieces = _gzip_head(head, size) if packing == "gzip" else _pieces(path, path)
    with suppress(ReportError):
        for piece in pieces:
            found += piece
            if len(found) >= size:
                break
    return found[:size] or head


def _gzip_head(packed: bytes, size: int) -> Iterator[bytes]:
    """What the members unfold to, of which the last may be cut."""
    while packed.startswith(GZIP_MAGIC):
        engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            yield engine.decompress(packed, size)
        except zlib.error as error:
            raise ReportError(f"the gzip data is damaged: {error}") from error
        packed = engine.unused_data


def _unfold(path: str, target: str, *, where: str) -> None:
    with open(target, "wb") as plain:
        for piece in _pieces(path, where):
            plain.write(piece)


def _pieces(path: str, where: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        kind = packing_of(file.read(16)) or "gzip"
    what = "zip archive" if kind == "zip" else f"{kind} data"
    limit = reader.expansion_limit(os.path.getsize(path))
    seen = 0
    try:
        with _opened(path, kind, where) as packed:
            while piece := packed.read(CHUNK_BYTES):
                seen += len(piece)
                if seen > limit:
                    raise ReportError(
                        f"the {what} unfolds to more than {limit} bytes",
                        where=where,
                        hint="the file is damaged, or not a report",
                    )
                yield piece
    except NotImplementedError as error:  # zipfile's, for a method that it does not know
        raise ReportError(
            f"the {what} cannot be unpacked here: {error}", where=where, hint="unpack it first"
        ) from error
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise ReportError(
            f"the {what} is cut or damaged: {error}", where=where, hint="copy the file again"
        ) from error


@contextmanager
def _opened(path: str, kind: str, where: str) -> Iterator[IO[bytes]]:
    if kind == "zip":
        with zipfile.ZipFile(path) as archive, archive.open(_only_file(archive, where)) as member:
            yield member
    elif kind == "zstd":
        with open(path, "rb") as file:
            yield cast("IO[bytes]", _ZstdFrames(file))
    else:
        openers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
        with openers[kind](path) as file:
            yield file


def _only_file(archive: zipfile.ZipFile, where: str) -> str:
    members = [one for one in archive.infolist() if not (one.is_dir() or _is_macs(one.filename))]
    names = {one.filename for one in members}
    for mark, what in _DOCUMENTS.items():
        if any(name.endswith(mark) for name in names):
            raise ReportError(f"this is {what}", where=where, hint=_DOCUMENT_HINT)
    if len(members) != 1:
        raise ReportError(
            f"this is a zip archive of {len(members)} files", where=where, hint="unpack it first"
        )
    if members[0].flag_bits & _ENCRYPTED:
        raise ReportError(
            "the zip archive is locked with a password", where=where, hint="unpack it first"
        )
    return members[0].filename


def _is_macs(name: str) -> bool:
    """What macOS adds to the archives that it makes."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2] == ".DS_Store"


class _ZstdFrames:
    """All frames of a file, each to its end: the library's own stream ends a cut one silently."""

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._file = file
        self._new = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj
        self._error = zstandard.ZstdError
        self._engine: Any = None
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Some bytes more, none at the end. Raises EOFError for a cut frame, OSError for damage."""
        while True:
            packed = self._rest or self._file.read(size)
            self._rest = b""
            if not packed:
                if self._engine is not None:
                    raise EOFError("it ends inside a frame")
                return b""
            if self._engine is None:
                self._engine = self._new()
            try:
                plain: bytes = self._engine.decompress(packed)
            except self._error as error:
                raise OSError(str(error)) from error
            if self._engine.eof:
                self._rest, self._engine = self._engine.unused_data, None
            if plain:
                return plain
