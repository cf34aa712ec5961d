"""The events of a JSON trace, a few megabytes at a time, however long the trace is.

The text is cut where one event ends and the next begins, and each piece is decoded as a JSON
list of its own. A cut at a wrong place (inside a string, inside a nested list) always leaves
unbalanced JSON, which no decoder takes; then the piece is scanned token by token for the right
place. So the common case is as fast as the decoder, and the rare one is exact.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import msgspec

from solscope.errors import ReportError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 4 << 20
MAX_EVENT_BYTES = 64 << 20
"""A piece this large without an end of an event is no trace."""

HEAD_LIMIT_BYTES = 64 << 20
"""What may stand before the events (metadata of some exporters is large)."""

HINT = "export the trace again, and wait until the profiler has written all of it"

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
# A string that the text cuts off runs to its end: what looks like brackets in it is text.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


class Trace:
    """One pass over a trace file: batches of events, then what stood around them.

    ``surroundings`` holds the other top-level keys once :meth:`batches` is exhausted.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.surroundings: dict[str, Any] = {}
        self.events = 0

    def batches(self, decoder: msgspec.json.Decoder[list[Any]]) -> Iterator[list[Any]]:
        """The events, decoded. Raises ReportError where the text is cut or no JSON."""
        with _open(self.path) as file:
            chunks = _chunks(file, self.path)
            buffer, head = self._head(chunks)
            for chunk in chunks:
                buffer += chunk
                end = _last_boundary(buffer)
                events = self._whole(buffer[:end], decoder) if end else None
                if end and events is None:
                    end, closed = _scan(buffer)
                    if closed:
                        break
                    events = self._decoded(buffer[:end], decoder)
                if events:
                    yield self._counted(events)
                    buffer = buffer[end:].lstrip().removeprefix(b",")
                elif len(buffer) > MAX_EVENT_BYTES:
                    raise self._error(f"one event is larger than {MAX_EVENT_BYTES} bytes")
            end, closed = _scan(buffer)
            if not closed:
                self._counted(self._whole(buffer[:end], decoder) or [])
                raise self._error(f"the trace is cut after {self.events} events")
            yield self._counted(self._decoded(buffer[:end], decoder))
            self._around(head, buffer[end:].lstrip()[1:] + b"".join(chunks))

    def _counted(self, events: list[Any]) -> list[Any]:
        self.events += len(events)
        return events

    def _error(self, what: str) -> ReportError:
        return ReportError(what, where=self.path, hint=HINT)

    def _head(self, chunks: Iterator[bytes]) -> tuple[bytes, bytes]:
        """What follows the opening bracket of the events, and what stood before it."""
        text = b""
        for chunk in chunks:
            text = (text + chunk).removeprefix(codecs.BOM_UTF8)
            if text.lstrip().startswith(b"["):
                return text.lstrip()[1:], b""
            for match in _EVENTS_KEY.finditer(text):
                if _object(text[: match.end()] + b"]}") is not None:
                    return text[match.end() :], text[: match.start()]
            if len(text) > HEAD_LIMIT_BYTES:
                break
        whole = _object(text) is not None
        raise self._error("no list of trace events in this JSON" if whole else "the trace is cut")

    def _around(self, head: bytes, rest: bytes) -> None:
        if not head:
            if rest.strip():
                raise self._error("text follows the events")
            return
        text = head.rstrip()
        tail = rest.lstrip()
        if text.endswith((b",", b"{")) and tail.startswith(b","):
            tail = tail[1:]
        elif text.endswith(b",") and tail.startswith(b"}"):
            text = text[:-1]
        found = _object(text + tail)
        if found is None:
            raise self._error(f"the trace is cut or damaged after its {self.events} events")
        self.surroundings = found

    def _whole(self, piece: bytes, decoder: msgspec.json.Decoder[list[Any]]) -> list[Any] | None:
        """The events of a piece, ``None`` where it was cut at a wrong place (or is damaged)."""
        try:
            return decoder.decode(b"[" + piece + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _decoded(self, piece: bytes, decoder: msgspec.json.Decoder[list[Any]]) -> list[Any]:
        try:
            return decoder.decode(b"[" + piece + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._error(f"damaged JSON after {self.events} events: {error}") from error


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    with open(path, "rb") as file:
        if file.read(2) == GZIP_MAGIC:
            file.seek(0)
            with gzip.open(file) as plain:
                yield cast("IO[bytes]", plain)
        else:
            file.seek(0)
            yield file


def _chunks(file: IO[bytes], path: str) -> Iterator[bytes]:
    try:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ReportError(
            f"the gzip data is cut or damaged: {error}", where=path, hint=HINT
        ) from error


def _last_boundary(text: bytes) -> int:
    """Where the last event surely ended before another began: just after its brace; 0 if none."""
    at = len(text)
    while (at := text.rfind(b"}", 0, at)) > 0:
        if _BETWEEN.match(text, at):
            return at + 1
        if len(text) - at > 1 << 20:
            break
    found = 0
    for match in _BETWEEN.finditer(text):
        found = match.start() + 1
    return found


def _scan(text: bytes) -> tuple[int, bool]:
    """Token by token: the end of the last whole event, and whether the list is closed there."""
    depth = end = 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                end = match.end()
            elif depth < 0:
                return (end or match.start()), True
    return end, False


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
