"""exec and port-forward over WebSocket and over SPDY, raw or tunnelled."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO

from tests.cluster.server import spdy
from tests.cluster.server.status import Json
from tests.cluster.server.websocket import WebSocket

EXEC_WEBSOCKET = ("v5.channel.k8s.io", "v4.channel.k8s.io")
EXEC_SPDY = ("v4.channel.k8s.io",)
FORWARD_TUNNEL = "SPDY/3.1+portforward.k8s.io"
FORWARD_SPDY = "portforward.k8s.io"
CHUNK = 65536
STREAMS_WITHIN_S = 30

Read = Callable[[int], bytes]
Write = Callable[[bytes], None]
Connect = Callable[[int], socket.socket]


@dataclass(frozen=True)
class Session:
    """A process in a container and which of its streams the client wants.

    ``failure`` is what the runtime says where the process could not be started, judged after
    its end from the exit code and from what it wrote to stderr.
    """

    process: subprocess.Popen[bytes]
    has_stdin: bool
    has_stdout: bool
    has_stderr: bool
    failure: Callable[[int, bytes], str | None]


def exit_status(code: int, failure: str | None) -> Json:
    """The Status that ends an exec."""
    head: Json = {"metadata": {}}
    if failure is not None:
        return {
            **head,
            "status": "Failure",
            "message": failure,
            "reason": "InternalError",
            "details": {"causes": [{"message": failure}]},
            "code": 500,
        }
    if code == 0:
        return {**head, "status": "Success"}
    return {
        **head,
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _pump(source: IO[bytes], sink: Write, kept: bytearray | None = None) -> None:
    while True:
        data = os.read(source.fileno(), CHUNK)
        if not data:
            return
        if kept is not None and len(kept) < CHUNK:
            kept += data
        sink(data)


def _discard(_: bytes) -> None:
    return


def _feed(sink: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        sink.write(data)
        sink.flush()


def _quietly(action: Callable[[], object]) -> None:
    try:
        action()
    except (OSError, ValueError):
        return


def _until_gone(read: Read) -> Read:
    """A read that gives nothing more once the client has gone.

    kubectl ends an exec by closing its socket; where our last bytes are still unread, that is a
    reset, and which of the two the reader meets is a matter of milliseconds.
    """

    def received(size: int) -> bytes:
        try:
            return read(size)
        except (OSError, ValueError):
            return b""

    return received


def _run(session: Session, send_out: Write, send_err: Write) -> Json:
    """Pump a process's output to its end and give the closing Status."""
    kept = bytearray()
    process = session.process

    def pump(source: IO[bytes] | None, sink: Write, keep: bytearray | None) -> None:
        assert source is not None
        try:
            _pump(source, sink, keep)
        except (OSError, ValueError):
            # The client has gone; nobody will read what the process still writes.
            process.terminate()
            _quietly(source.close)

    threads = [
        threading.Thread(target=pump, args=(process.stdout, send_out, None), daemon=True),
        threading.Thread(target=pump, args=(process.stderr, send_err, kept), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    code = process.wait()
    _close_pipes(process)
    return exit_status(code, session.failure(code, bytes(kept)))


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            _quietly(pipe.close)


def abandon(session: Session) -> None:
    """End a process whose client never came."""
    session.process.kill()
    session.process.wait()
    _close_pipes(session.process)


def exec_websocket(session: Session, read: Read, write: Write, protocol: str) -> None:
    """Serve an exec: the first byte of a message is its channel."""
    peer = WebSocket(_until_gone(read), write)

    def feed() -> None:
        stdin = session.process.stdin
        while True:
            message = peer.receive()
            if message is None:
                break
            if not message or stdin is None:
                continue
            if message[0] == 0:
                _feed(stdin, message[1:])
            elif message[0] == 255 and message[1:] == b"\x00" and protocol.startswith("v5"):
                _quietly(stdin.close)
        if session.process.poll() is None:
            session.process.terminate()

    if not session.has_stdin and session.process.stdin is not None:
        session.process.stdin.close()
    threading.Thread(target=feed, daemon=True).start()
    status = _run(
        session, lambda data: peer.send(b"\x01" + data), lambda data: peer.send(b"\x02" + data)
    )
    _quietly(lambda: peer.send(b"\x03" + json.dumps(status).encode()))
    _quietly(peer.close)


def exec_spdy(session: Session, read: Read, write: Write) -> None:
    """Serve an exec: one SPDY stream a channel, as kubectl up to 1.29 wants it."""
    connection = spdy.Connection(_until_gone(read), write)
    wanted = {"error"}
    for name, has in (
        ("stdin", session.has_stdin),
        ("stdout", session.has_stdout),
        ("stderr", session.has_stderr),
    ):
        if has:
            wanted.add(name)
    streams: dict[str, spdy.Stream] = {}
    complete = threading.Event()

    def opened(stream: spdy.Stream) -> None:
        streams[stream.headers.get("streamtype", "")] = stream
        if wanted <= set(streams):
            complete.set()

    def serve() -> None:
        _quietly(lambda: connection.serve(opened))
        if session.process.poll() is None:
            session.process.terminate()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    if not complete.wait(STREAMS_WITHIN_S):
        abandon(session)
        return
    if "stdin" in streams:
        threading.Thread(
            target=_drain, args=(streams["stdin"].incoming, session.process.stdin), daemon=True
        ).start()
    elif session.process.stdin is not None:
        session.process.stdin.close()
    status = _run(
        session,
        streams["stdout"].send if "stdout" in streams else _discard,
        streams["stderr"].send if "stderr" in streams else _discard,
    )
    for name in ("stdout", "stderr"):
        if name in streams:
            _quietly(streams[name].close)
    _quietly(lambda: streams["error"].send(json.dumps(status).encode()))
    _quietly(streams["error"].close)
    server.join(timeout=5)


def _drain(queue: SimpleQueue[bytes | None], sink: IO[bytes]) -> None:
    while True:
        data = queue.get()
        if data is None:
            _quietly(sink.close)
            return
        _feed(sink, data)


def forward_tunnel(connect: Connect, read: Read, write: Write) -> None:
    """Serve a port-forward: SPDY frames inside WebSocket messages."""
    peer = WebSocket(_until_gone(read), write)
    forward_spdy(connect, peer.read_bytes, peer.send)
    _quietly(peer.close)


def forward_spdy(connect: Connect, read: Read, write: Write) -> None:
    """Serve a port-forward: a pair of streams (data, error) for each connection."""
    connection = spdy.Connection(_until_gone(read), write)
    waiting: dict[str, dict[str, spdy.Stream]] = {}

    def opened(stream: spdy.Stream) -> None:
        pair = waiting.setdefault(stream.headers.get("requestid", ""), {})
        pair[stream.headers.get("streamtype", "")] = stream
        if {"data", "error"} <= set(pair):
            threading.Thread(
                target=lambda: _quietly(lambda: _forward(connect, pair["data"], pair["error"])),
                daemon=True,
            ).start()

    _quietly(lambda: connection.serve(opened))


def _forward(connect: Connect, data: spdy.Stream, error: spdy.Stream) -> None:
    port = int(data.headers["port"])
    try:
        backend = connect(port)
    except OSError as problem:
        text = f"failed to connect to localhost:{port} inside namespace: {problem}"
        error.send(text.encode())
        error.close()
        data.close()
        return

    def upstream() -> None:
        while True:
            chunk = data.incoming.get()
            if chunk is None:
                _quietly(lambda: backend.shutdown(socket.SHUT_WR))
                return
            with contextlib.suppress(OSError):
                backend.sendall(chunk)

    threading.Thread(target=upstream, daemon=True).start()
    with backend:
        while True:
            chunk = backend.recv(CHUNK)
            if not chunk:
                break
            data.send(chunk)
    data.close()
    error.close()
