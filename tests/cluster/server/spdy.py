"""SPDY/3.1, as much of it as Kubernetes' streams use: no flow control, no priorities.

Source of the frame layouts and of the header dictionary: the published SPDY/3 draft.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base "
    "content-encoding content-language content-length content-location content-md5 "
    "content-range content-type date etag expect expires from host if-match if-modified-since "
    "if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer "
    "transfer-encoding upgrade user-agent vary via warning www-authenticate method get status "
    "200_OK version HTTP/1.1 url public set-cookie keep-alive origin"
)
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Una"
    "uthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service "
    "UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fr"
    "i, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application"
    "/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8ch"
    "arset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY_ADLER = 0xE3C6A7C2

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY = 1, 2, 3, 4, 6, 7
FIN = 1


def dictionary() -> bytes:
    """The preset zlib dictionary of header blocks."""
    words = (word.replace("_", " ").encode() for word in _WORDS.split())
    return b"".join(struct.pack(">I", len(w)) + w for w in words) + _TAIL.encode()


@dataclass
class Stream:
    """One stream. ``incoming`` gets the peer's bytes, then ``None`` at its end."""

    connection: Connection
    number: int
    headers: dict[str, str]
    incoming: SimpleQueue[bytes | None] = field(default_factory=SimpleQueue)
    is_closed: bool = False

    def send(self, data: bytes) -> None:
        """Send bytes to the peer."""
        for at in range(0, len(data), 65536):
            self.connection.send_data(self.number, data[at : at + 65536], 0)

    def close(self) -> None:
        """End our side of the stream."""
        if not self.is_closed:
            self.is_closed = True
            self.connection.send_data(self.number, b"", FIN)


class Connection:
    """A server's side of one connection over any pair of read and write functions."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._inflate = zlib.decompressobj(zdict=dictionary())
        self._deflate = zlib.compressobj(zdict=dictionary())
        self.streams: dict[int, Stream] = {}

    def serve(self, opened: Callable[[Stream], None]) -> None:
        """Read frames until the peer goes; ``opened`` is called for each new stream."""
        try:
            while True:
                head = self._read(8)
                if len(head) < 8:
                    break
                first, length = struct.unpack(">II", head)
                flags, length = length >> 24, length & 0xFFFFFF
                payload = self._read(length) if length else b""
                if len(payload) < length:
                    break
                if first & 0x80000000:
                    if self._control(first & 0xFFFF, flags, payload, opened) == GOAWAY:
                        break
                else:
                    self._data(first, flags, payload)
        finally:
            for stream in list(self.streams.values()):
                stream.incoming.put(None)

    def _control(
        self, kind: int, flags: int, payload: bytes, opened: Callable[[Stream], None]
    ) -> int:
        if kind == SYN_STREAM:
            number = struct.unpack(">I", payload[:4])[0] & 0x7FFFFFFF
            stream = Stream(self, number, self._headers(payload[10:]))
            self.streams[number] = stream
            self._reply(number)
            opened(stream)
            if flags & FIN:
                stream.incoming.put(None)
        elif kind == PING:
            self._frame(PING, 0, payload)
        elif kind == RST_STREAM:
            number = struct.unpack(">I", payload[:4])[0] & 0x7FFFFFFF
            if number in self.streams:
                self.streams[number].incoming.put(None)
        return kind

    def _data(self, number: int, flags: int, payload: bytes) -> None:
        stream = self.streams.get(number & 0x7FFFFFFF)
        if stream is None:
            return
        if payload:
            stream.incoming.put(payload)
        if flags & FIN:
            stream.incoming.put(None)

    def _headers(self, block: bytes) -> dict[str, str]:
        raw = self._inflate.decompress(block)
        at = 4
        found: dict[str, str] = {}
        for _ in range(struct.unpack(">I", raw[:4])[0]):
            pair = []
            for _ in range(2):
                size = struct.unpack(">I", raw[at : at + 4])[0]
                pair.append(raw[at + 4 : at + 4 + size].decode())
                at += 4 + size
            found[pair[0].lower()] = pair[1]
        return found

    def _reply(self, number: int) -> None:
        with self._lock:
            block = self._deflate.compress(struct.pack(">I", 0))
            block += self._deflate.flush(zlib.Z_SYNC_FLUSH)
            self._send_frame(SYN_REPLY, 0, struct.pack(">I", number) + block)

    def _frame(self, kind: int, flags: int, payload: bytes) -> None:
        with self._lock:
            self._send_frame(kind, flags, payload)

    def _send_frame(self, kind: int, flags: int, payload: bytes) -> None:
        head = struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload))
        self._write(head + payload)

    def send_data(self, number: int, data: bytes, flags: int) -> None:
        """One data frame."""
        with self._lock:
            self._write(struct.pack(">II", number, flags << 24 | len(data)) + data)
