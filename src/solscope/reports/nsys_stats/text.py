"""Bytes of a printed table as lines."""

from __future__ import annotations

import codecs

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def lines_of(data: bytes) -> list[str]:
    """The lines, without their ends: UTF-8, UTF-16 with its mark, else Latin-1."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace") if encoding != "utf-8" else _latin(data)
    return [line.rstrip("\r") for line in text.split("\n")]


def _latin(data: bytes) -> str:
    """A head may end inside a character; only other damage makes it Latin-1."""
    try:
        data[:-3].decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
    return data.decode("utf-8", "replace")
