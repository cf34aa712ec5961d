"""Sockets: plain HTTP/1.1 on a loopback port, a TLS front before it, faults in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cluster.server.api import Api
from tests.cluster.server.faults import CutWriter, Fault
from tests.cluster.server.pods import Upgrade
from tests.cluster.server.request import Request, Response, refused
from tests.cluster.server.status import ApiError

FAULTS_PATH = "/test/faults"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    api: Api

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def answer(self) -> None:
        """Answer one request."""
        length = int(self.headers.get("Content-Length") or 0)
        chunked = "chunked" in self.headers.get("Transfer-Encoding", "")
        body = self._chunks() if chunked else self.rfile.read(length)
        acting = self.api.faults.take(self.command, self.path)
        self._emit = self._writer(acting)
        headers = dict(self.headers.items())
        try:
            for rule in acting:
                if rule.kind == "delay":
                    time.sleep(rule.seconds)
                elif rule.kind == "drop":
                    self._close()
                    return
            broken = next((r for r in acting if r.kind == "status"), None)
            if broken is not None:
                self._send(_fault_answer(broken))
                return
            self._respond(headers, body, acting)
        except (ConnectionError, ssl.SSLError, TimeoutError):
            self.close_connection = True

    def _chunks(self) -> bytes:
        body = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            body += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return body

    def _writer(self, acting: list[Fault]) -> Callable[[bytes], object]:
        cut = next((r for r in acting if r.kind == "cut"), None)
        if cut is None:
            return self.wfile.write
        return CutWriter(self.wfile.write, cut.after_bytes, self._close)

    def _close(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _respond(self, headers: dict[str, str], body: bytes, acting: list[Fault]) -> None:
        try:
            lowered = {name.lower(): value for name, value in headers.items()}
            user = self.api.user(lowered)
        except ApiError as error:
            self._send(refused(error))
            return
        request = Request.of(user, self.command, self.path, headers, body)
        if request.path == FAULTS_PATH:
            self._send(self._set_fault(request))
            return
        refusal = next((r for r in acting if r.kind == "refuse-upgrade"), None)
        if refusal is not None and request.is_upgrade:
            self._send(_fault_answer(refusal))
            return
        answer = self.api.handle(request)
        if isinstance(answer, Upgrade):
            self._upgrade(answer)
        else:
            self._send(answer)

    def _set_fault(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.api.faults.clear()
        elif request.method == "POST":
            options = request.parsed()
            self.api.faults.add(options.pop("kind"), **options)
        return Response(200, {"hits": self.api.faults.hits})

    def _send(self, answer: Response) -> None:
        streamed = answer.stream is not None
        payload = b"" if streamed else answer.payload()
        lines = [f"HTTP/1.1 {answer.status} {self.responses.get(answer.status, ('',))[0]}"]
        if answer.status != 204:
            lines.append(f"Content-Type: {answer.content_type}")
        lines += [f"Warning: 299 - {json.dumps(text)}" for text in answer.warnings]
        lines.append(
            "Transfer-Encoding: chunked" if streamed else f"Content-Length: {len(payload)}"
        )
        self._emit("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)
        if answer.stream is not None:
            for piece in answer.stream:
                if piece:
                    self._emit(b"%x\r\n%s\r\n" % (len(piece), piece))
            self._emit(b"0\r\n\r\n")

    def _upgrade(self, answer: Upgrade) -> None:
        lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade"]
        lines.append(f"Upgrade: {answer.protocol}")
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        self.close_connection = True
        try:
            self._emit("\r\n".join(lines).encode() + b"\r\n\r\n")
        except OSError:
            answer.cancel()
            raise

        def write(data: bytes) -> None:
            self._emit(data)
            self.wfile.flush()

        answer.serve(self.rfile.read, write)


def _fault_answer(rule: Fault) -> Response:
    message = "an error on the server made by a fault rule of the test cluster"
    return refused(ApiError(rule.code, "InternalError" if rule.code == 500 else "", message))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Listener:
    """Serves an Api over TLS on a loopback port until stopped."""

    def __init__(self, api: Api, certificate: Path, key: Path, port: int = 0) -> None:
        methods = {f"do_{name}": Handler.answer for name in METHODS}
        handler = type("BoundHandler", (Handler,), {"api": api, **methods})
        self._plain = _Server(("127.0.0.1", 0), handler)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._loop = asyncio.new_event_loop()
        self._wanted = port
        self._ready = threading.Event()
        self.port = 0

    def start(self) -> None:
        """Listen. ``port`` holds the number afterwards."""
        threading.Thread(target=self._plain.serve_forever, args=(0.1,), daemon=True).start()
        self._front = threading.Thread(target=self._run_front, daemon=True)
        self._front.start()
        self._ready.wait(10)

    def _run_front(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._bridge, "127.0.0.1", self._wanted, ssl=self._context)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _bridge(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(*self._plain.server_address)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

    def stop(self) -> None:
        """Close every socket."""
        self._plain.shutdown()
        self._plain.server_close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._front.join(5)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        pass
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.close()
