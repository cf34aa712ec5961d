"""Bytes to text, for files that went through shells and editors of all kinds."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from dataclasses import dataclass

from solscope.errors import ReportError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with BOM"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 (little-endian) with BOM"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 (big-endian) with BOM"),
)
# Colours and other commands to a terminal: CSI sequences, titles of windows (OSC).
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)")
# gzip of printed tables reaches 100:1; this bounds what a hostile file can make of memory.
_LARGEST_UNFOLDED = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A file's text, and by which encoding it was read. Line ends are as in the file."""

    text: str
    encoding: str


def unfold(data: bytes, *, where: str) -> bytes:
    """The bytes themselves, or what they hold where they are gzip.

    Raises ReportError for a damaged or absurdly large gzip file.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        unfolded = zlib.decompressobj(31)
        text = unfolded.decompress(data, _LARGEST_UNFOLDED)
        if unfolded.eof and not unfolded.unused_data:
            return text
        if unfolded.unconsumed_tail:
            raise ReportError("the gzip file unfolds to over 2 GiB", where=where)
        return gzip.decompress(data)
    except (zlib.error, OSError, EOFError) as error:
        raise ReportError("the gzip file is damaged or cut", where=where) from error


def decode(data: bytes) -> DecodedText:
    """Text of the bytes: UTF-8, UTF-16 (by BOM or by its zero bytes), else Latin-1; without the
    colours of a terminal.

    Latin-1 decodes anything; it is what is left when the bytes are no UTF-8, and matters only
    for the no-break space of number groups and for names.
    """
    decoded = _decode(data)
    if "\x1b" not in decoded.text:
        return decoded
    return DecodedText(_COLOUR.sub("", decoded.text), f"{decoded.encoding}, colours cut off")


def _decode(data: bytes) -> DecodedText:
    for bom, codec, name in _BOMS:
        if data.startswith(bom):
            return DecodedText(data[len(bom) :].decode(codec, errors="replace"), name)
    sample = data[:2000]
    if len(sample) >= 4:
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        half = len(sample) // 2
        if odd > 0.7 * half and even == 0:
            return DecodedText(data.decode("utf-16-le", errors="replace"), "UTF-16 (little-endian)")
        if even > 0.7 * half and odd == 0:
            return DecodedText(data.decode("utf-16-be", errors="replace"), "UTF-16 (big-endian)")
    try:
        return DecodedText(data.decode("utf-8"), "ASCII" if data.isascii() else "UTF-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors=_AS_LATIN_1)
        is_mixed = len(text) < len(data)  # some characters of several bytes were UTF-8
        return DecodedText(text, "UTF-8 and Latin-1" if is_mixed else "Latin-1 (no valid UTF-8)")


def _byte_by_byte(error: UnicodeError) -> tuple[str, int]:
    """What is no UTF-8 as Latin-1: files of two machines, joined, may be written in both."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_AS_LATIN_1 = "solscope-latin-1"
codecs.register_error(_AS_LATIN_1, _byte_by_byte)


def decode_head(head: bytes) -> str:
    """Text of a file's first bytes, of which the last character may be cut."""
    for bom, codec, _ in _BOMS:
        if head.startswith(bom):
            return head[len(bom) :].decode(codec, errors="ignore")
    decoded = decode(head)
    if decoded.encoding.startswith("Latin-1"):
        text = head.decode("utf-8", errors="ignore")
        if len(text.encode()) >= len(head) - 3:
            return text
    return decoded.text
