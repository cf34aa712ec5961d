"""Startup, liveness and readiness probes."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable

from tests.cluster.node.container import Container
from tests.cluster.server.status import Json

Connect = Callable[[int], socket.socket]
Run = Callable[[list[str]], subprocess.Popen[bytes]]


def port_number(spec: Json, port: object) -> int:
    """A port by number or by its name in the container. Raises LookupError."""
    if str(port).isdigit():
        return int(str(port))
    for entry in spec.get("ports") or []:
        if entry.get("name") == port:
            return int(entry["containerPort"])
    raise LookupError(f"no port named {port}")


def attempt(probe: Json, spec: Json, connect: Connect, run: Run) -> str | None:
    """One attempt; ``None`` is success, else what failed."""
    timeout = probe.get("timeoutSeconds", 1)
    try:
        if "exec" in probe:
            return _command(run(probe["exec"]["command"]), timeout)
        action = probe.get("httpGet") or probe.get("tcpSocket") or {}
        with connect(port_number(spec, action.get("port", 0))) as connection:
            if "tcpSocket" in probe:
                return None
            connection.settimeout(timeout)
            path = action.get("path", "/")
            request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nUser-Agent: kube-probe\r\n\r\n"
            connection.sendall(request.encode())
            with connection.makefile("rb") as answer:
                status = answer.readline().split()
        code = int(status[1]) if len(status) > 1 else 0
        if 200 <= code < 400:
            return None
        return f"HTTP probe failed with statuscode: {code}"
    except (OSError, LookupError) as error:
        return f"Get: {error}"


def _command(process: subprocess.Popen[bytes], timeout: float) -> str | None:
    try:
        process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"command timed out after {timeout}s"
    return None if process.returncode == 0 else f"exit code {process.returncode}"


class Prober:
    """The probes of one container instance; tells of changes through its answers."""

    def __init__(self, container: Container, connect: Connect, run: Run) -> None:
        self._container, self._connect, self._run = container, connect, run
        self._next: dict[str, float] = {}
        self._failed: dict[str, int] = {}
        self._passed: dict[str, int] = {}

    def step(self) -> tuple[str, str] | None:
        """Run what is due. Gives (kind, text) of a failure worth an event."""
        spec, now = self._container.spec, time.monotonic()
        kinds = ["startupProbe"] if not self._container.is_started else []
        kinds = kinds or ["livenessProbe", "readinessProbe"]
        said = None
        for kind in kinds:
            probe = spec.get(kind)
            if not probe:
                continue
            first = self._container.began + probe.get("initialDelaySeconds", 0)
            if now < max(first, self._next.get(kind, 0.0)):
                continue
            self._next[kind] = now + probe.get("periodSeconds", 10)
            fault = attempt(probe, spec, self._connect, self._run)
            self._count(kind, probe, fault)
            if fault is not None:
                said = (kind, fault)
        return said

    def _count(self, kind: str, probe: Json, fault: str | None) -> None:
        if fault is None:
            self._failed[kind] = 0
            self._passed[kind] = self._passed.get(kind, 0) + 1
            if self._passed[kind] < probe.get("successThreshold", 1):
                return
            if kind == "startupProbe":
                self._container.is_started = True
                if "readinessProbe" not in self._container.spec:
                    self._container.is_ready = True
            elif kind == "readinessProbe":
                self._container.is_ready = True
            return
        self._passed[kind] = 0
        self._failed[kind] = self._failed.get(kind, 0) + 1
        if kind == "readinessProbe" and self._failed[kind] >= probe.get("failureThreshold", 3):
            self._container.is_ready = False

    def must_restart(self) -> str | None:
        """The probe that has failed often enough to kill the container."""
        for kind in ("startupProbe", "livenessProbe"):
            probe = self._container.spec.get(kind)
            if probe and self._failed.get(kind, 0) >= probe.get("failureThreshold", 3):
                return kind
        return None
