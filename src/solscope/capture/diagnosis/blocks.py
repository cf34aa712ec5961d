"""Bytes in, blocks of whole lines out, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

BLOCK_BYTES = 1 << 20


class Readable(Protocol):
    """Anything that gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


def lines_with(low: bytes, needles: list[bytes]) -> list[tuple[int, int]]:
    """Start and end of each line that holds one of the needles, in order."""
    lines: dict[int, int] = {}
    for needle in needles:
        position = low.find(needle)
        while position >= 0:
            start = low.rfind(b"\n", 0, position) + 1
            end = low.find(b"\n", position)
            end = len(low) if end < 0 else end
            lines[start] = end
            position = low.find(needle, end)
    return sorted(lines.items())


def blocks_of(stream: Readable) -> Iterator[bytes]:
    """The stream in blocks that end at line ends (a line of several blocks is cut)."""
    rest = b""
    first = True
    codec: str | None = None
    while True:
        data = stream.read(BLOCK_BYTES)
        if first:
            codec = _wide_codec(data)
            first = False
        if not data:
            break
        if codec:
            data = data.decode(codec, "replace").encode("utf-8")
        data = rest + data
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) < 4 * BLOCK_BYTES:
            rest = data
            continue
        end = end or len(data)
        rest = data[end:]
        yield data[:end]
    if rest:
        yield rest


def _wide_codec(data: bytes) -> str | None:
    """UTF-16, as a Windows shell writes logs; told by its byte order mark."""
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if data.startswith(b"\xfe\xff") else None
