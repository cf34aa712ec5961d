"""A client that vanishes in the middle of a stream ends its process, and breaks nothing else.

A thread that raises fails the test that runs: pytest turns its exception into an error.
"""

from __future__ import annotations

import struct
import subprocess
import threading
import time

import pytest

from tests.cluster.server import spdy, streams
from tests.cluster.server.streams import Session

MASK = b"\0\0\0\0"
TO_STDIN = b"\x82\x86" + MASK + b"\x00hello"
MESSAGES = {
    "between-messages": TO_STDIN,
    "in-a-head": TO_STDIN + b"\x82",
    "in-a-short-length": TO_STDIN + b"\x82\xfe\x01",
    "in-a-long-length": TO_STDIN + b"\x82\xff\0\0\0",
    "in-a-mask": TO_STDIN + b"\x82\x86\0",
    "in-a-payload": TO_STDIN + b"\x82\xff" + struct.pack(">Q", 1 << 20) + MASK + b"\x00half",
    "after-a-ping": TO_STDIN + b"\x89\x80" + MASK,
    "after-goodbye": TO_STDIN + b"\x88\x80" + MASK,
}
FRAMES = {
    "at-once": b"",
    "in-a-head": b"\x80\x03",
    "in-a-stream-s-head": struct.pack(">HHI", 0x8003, spdy.SYN_STREAM, 100) + b"\0\0",
    "in-data": struct.pack(">II", 1, 100) + b"\0\0",
    "after-a-ping": struct.pack(">HHI", 0x8003, spdy.PING, 4) + b"\0\0\0\1",
}


class Vanishing:
    """A client's side: so many bytes, then a reset, for what is sent to it, too."""

    def __init__(self, sent: bytes) -> None:
        self._left = sent
        self._gone = threading.Event()

    def read(self, size: int) -> bytes:
        taken, self._left = self._left[:size], self._left[size:]
        if len(taken) < size:
            self._gone.set()
            raise ConnectionResetError(104, "Connection reset by peer")
        return taken

    def write(self, data: bytes) -> None:
        self._gone.wait(10)
        raise BrokenPipeError(32, "Broken pipe")


def a_session() -> Session:
    process = subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    return Session(process, True, True, True, failure=lambda code, stderr: None)


def others_end(before: set[threading.Thread]) -> bool:
    """Whether every thread that was begun since has ended in time."""
    ends = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < ends:
        time.sleep(0.01)
    return not set(threading.enumerate()) - before


@pytest.mark.parametrize("sent", MESSAGES.values(), ids=MESSAGES)
def test_a_websocket_client_that_vanishes_ends_its_process(sent: bytes) -> None:
    before = set(threading.enumerate())
    session, client = a_session(), Vanishing(sent)
    streams.exec_websocket(session, client.read, client.write, "v5.channel.k8s.io")
    assert session.process.returncode is not None
    assert others_end(before)


@pytest.mark.parametrize("sent", FRAMES.values(), ids=FRAMES)
def test_a_spdy_client_that_vanishes_ends_its_process(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAMS_WITHIN_S", 0.1)
    before = set(threading.enumerate())
    session, client = a_session(), Vanishing(sent)
    streams.exec_spdy(session, client.read, client.write)
    assert session.process.returncode is not None
    assert others_end(before)


@pytest.mark.parametrize("sent", FRAMES.values(), ids=FRAMES)
def test_a_forwarding_client_that_vanishes_ends_the_forwarding(sent: bytes) -> None:
    client = Vanishing(sent)

    def connect(port: int) -> object:
        raise AssertionError(port)

    streams.forward_spdy(connect, client.read, client.write)  # type: ignore[arg-type]
    framed = b"\x82" + bytes([0x80 | len(sent)]) + MASK + sent if sent else b""
    tunnelled = Vanishing(framed)
    streams.forward_tunnel(connect, tunnelled.read, tunnelled.write)  # type: ignore[arg-type]
