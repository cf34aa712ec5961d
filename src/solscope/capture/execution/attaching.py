"""The second ncu, for strategies in which one starts the server and another one profiles it.

A server started that way stands still at its first CUDA call until somebody attaches: so the
second ncu comes before any wait for readiness. And a port in a plan is only a claim: an attach
to nothing fails at once, and one to something else may never end. What listens is therefore read
where the second ncu will connect, from the kernel's own table, without connecting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from solscope.capture.execution import profiler_log, scripts
from solscope.capture.execution.profiler_log import ProfilerLog
from solscope.capture.execution.server import SIDECAR, Sister
from solscope.cluster.port import Unreachable
from solscope.errors import CaptureError
from solscope.model.plan import CapturePlan, Strategy

POLL_S = 0.5
LOG = f"{scripts.NOTES}/attach.log"
BASE_PORT, PORTS = 49152, 64
"""Where ncu waits to be attached to, and how many ports from there on it may take."""
_PRELOAD_LIMIT_S = 60.0
_NOBODY = "No processes found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attaching:
    """The second ncu of a plan, in the sister's sidecar."""

    sister: Sister
    plan: CapturePlan
    command: tuple[str, ...]
    tick: Callable[[str], None]

    @property
    def _port(self) -> int:
        words = self.plan.arguments
        return int(words[words.index("--port") + 1]) if "--port" in words else BASE_PORT

    def attach(self, limit_s: float) -> Mapping[str, Any]:
        """Wait for an endpoint, start the second ncu detached, wait until it has attached.

        Raises CaptureError where nothing listens, or where it ends without having attached.
        """
        if profiler_log.read(log_text(self.sister)).has_connected:
            # This tool was killed between the attaching and its receipt. Nothing listens any more.
            return {"pid": None, "port": self._port, "tries": 0}
        ends = time.monotonic() + limit_s
        port = self._listening(ends)
        tries = 0
        while True:
            tries += 1
            pid = self._start()
            found = self._outcome(pid, ends)
            if found.has_connected:
                return {"pid": pid, "port": port, "tries": tries}
            if not any(_NOBODY in error for error in found.errors) or time.monotonic() >= ends:
                raise CaptureError(
                    f"the second ncu did not attach: {_why(found, limit_s)}",
                    where=f"pod/{self.sister.pod}",
                    hint="its log is in the bundle; --strategy launch needs no second ncu",
                )
            self.tick("attach: the server has not come to its first CUDA call yet")
            time.sleep(2 * POLL_S)

    def _listening(self, ends: float) -> int:
        """The port that is listened on, in the network that the second ncu will use."""
        if self.plan.strategy is Strategy.PRELOAD:
            ends = min(ends, time.monotonic() + _PRELOAD_LIMIT_S)
        words = ("sh", "-c", scripts.LISTENING, "sh", str(self._port), str(PORTS))
        while True:
            self.sister.must_run()
            done = self.sister.exec(words, container=SIDECAR)
            said = done.stdout.decode("utf-8", "replace").split()
            if said:
                return int(said[0])
            if time.monotonic() >= ends:
                break
            self.tick(f"attach: nothing listens on port {self._port} yet")
            time.sleep(POLL_S)
        raise CaptureError(
            f"nothing listens on 127.0.0.1:{self._port} of the sister",
            where=f"pod/{self.sister.pod}",
            hint="preload is unverified: plan with --strategy launch"
            if self.plan.strategy is Strategy.PRELOAD
            else "is the server under `ncu --mode launch`? its log is in the bundle; "
            "--strategy launch needs no endpoint",
        )

    def _start(self) -> str:
        words = ("sh", "-c", scripts.ATTACH, "sh", LOG, *self.command)
        done = self.sister.exec(words, container=SIDECAR)
        if done.exit_code != 0:
            self.sister.must_not_end()
            raise CaptureError(f"the second ncu did not start: {done.stderr.strip()[-300:]}")
        return done.stdout.decode("utf-8", "replace").strip()

    def _outcome(self, pid: str, ends: float) -> ProfilerLog:
        """Its log once it has attached, has ended, or time is up."""
        while True:
            time.sleep(POLL_S)
            try:
                done = self.sister.exec(
                    ("sh", "-c", scripts.ATTACH_STATE, "sh", LOG, pid), container=SIDECAR
                )
            except Unreachable:
                continue
            found = profiler_log.read(done.stdout.decode("utf-8", "replace"))
            is_over = "dead" in done.stderr.split()
            if found.has_connected or is_over or time.monotonic() >= ends:
                return found
            self.sister.must_run()
            self.tick("attach: waiting for the second ncu")


def log_text(sister: Sister) -> str:
    """What the second ncu has said; empty where there is none. Raises ClusterError."""
    done = sister.exec(("cat", LOG), container=SIDECAR)
    return done.stdout.decode("utf-8", "replace")


def _why(found: ProfilerLog, limit_s: float) -> str:
    return found.errors[-1] if found.errors else f"no process within {limit_s:g} s"
