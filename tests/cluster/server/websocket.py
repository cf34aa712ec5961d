"""RFC 6455 framing, a server's side: no extensions, no masking of what we send."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import struct
import threading
from collections.abc import Callable

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, TEXT, CLOSE, PING, PONG = 2, 1, 8, 9, 10


def accept_key(key: str) -> str:
    """The handshake's answer to a client's key."""
    return base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()


class WebSocket:
    """Messages over a pair of read (exactly n bytes, short at the end) and write functions."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._buffer = b""
        self.is_closed = False

    def receive(self) -> bytes | None:
        """The next message, or ``None`` when the peer has closed."""
        message = b""
        while True:
            head = self._read(2)
            if len(head) < 2:
                return None
            final, opcode = head[0] & 0x80, head[0] & 0x0F
            length = head[1] & 0x7F
            more = {126: 2, 127: 8}.get(length, 0)
            mask_size = 4 if head[1] & 0x80 else 0
            rest = self._read(more + mask_size)
            if len(rest) < more + mask_size:
                return None
            if more:
                length = int.from_bytes(rest[:more], "big")
            mask = rest[more:]
            data = self._read(length) if length else b""
            if len(data) < length:
                return None
            data = _unmask(data, mask) if mask else data
            if opcode == CLOSE:
                with contextlib.suppress(OSError, ValueError):
                    self.close()
                return None
            if opcode == PING:
                with contextlib.suppress(OSError, ValueError):
                    self._frame(PONG, data)
                continue
            if opcode == PONG:
                continue
            message += data
            if final:
                return message

    def send(self, data: bytes) -> None:
        """Send one binary message."""
        self._frame(BINARY, data)

    def close(self, code: int = 1000) -> None:
        """Say goodbye once."""
        if not self.is_closed:
            self.is_closed = True
            self._frame(CLOSE, struct.pack(">H", code))

    def _frame(self, opcode: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | opcode, size)
        elif size < 65536:
            head = struct.pack(">BBH", 0x80 | opcode, 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, 127, size)
        with self._lock:
            self._write(head + data)

    def read_bytes(self, size: int) -> bytes:
        """Exactly ``size`` bytes across messages (for a protocol that runs inside)."""
        while len(self._buffer) < size:
            message = self.receive()
            if message is None:
                break
            self._buffer += message
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


def _unmask(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
