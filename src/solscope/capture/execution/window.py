"""The window: opened when the server is warm, filled with requests, closed, waited out."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from solscope.capture.execution import attaching, pods, profiler_log, scripts, workload
from solscope.capture.execution.profiler_log import ProfilerLog
from solscope.capture.execution.server import Sister
from solscope.cluster.port import Unreachable
from solscope.errors import CaptureError, ClusterError
from solscope.model.plan import CapturePlan, LaunchFilter, NameBase, Strategy, Window

POLL_S = 0.5
_STOP_LIMIT_S = 300.0
_PROBE_LIMIT_S = 100.0
# vLLM's profiler is chosen when it starts. SGLang's is by each request, torch's by default, and
# that one takes the counters away from ncu.
_OPENING = {"sglang": json.dumps({"activities": ["CUDA_PROFILER"]})}
# vLLM catches what cudaProfilerStart raises, logs it, and answers 200.
_REFUSED = re.compile(r"Failed to start profiler:?(.*)")
_DENIED = ("ERR_NVGPUCTRPERM", "driver resource was unavailable")


# One that is killed at its limit would leave clocks locked that it had locked.
PROBE = ("--config-file", "off", "--clock-control", "none", "--metrics", "sm__cycles_elapsed.max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The plan's window on a sister."""

    sister: Sister
    plan: CapturePlan
    tick: Callable[[str], None]
    engine: str | None = None

    @property
    def has_endpoint(self) -> bool:
        """Whether the window is opened by a request to the server."""
        return self.plan.launches.window is Window.ENGINE_PROFILER

    def log_text(self) -> str:
        """The log of whichever ncu builds the report."""
        if self.plan.strategy not in (Strategy.ATTACH, Strategy.PRELOAD):
            return self.sister.log()
        return attaching.log_text(self.sister)

    def log(self) -> ProfilerLog:
        """What ncu has said so far."""
        return profiler_log.read(self.log_text())

    # -- the control probe ---------------------------------------------------------------------

    def probe(self, ncu: str, keep: Callable[[str], None]) -> Mapping[str, Any]:
        """Profile one empty kernel with one metric: are counters readable?

        Raises CaptureError where they are denied; ``keep`` is then given what ncu said. Where
        the probe itself cannot run, the answer is undecided and the window's first launch decides.
        """
        words = (ncu, *PROBE, "-c", "1")
        command = (*words, "python3", "-c", scripts.PROBE_KERNEL)
        bounded = ("sh", "-c", scripts.BOUNDED, "sh", f"{_PROBE_LIMIT_S:g}", *command)
        done = self.sister.exec(bounded, timeout_s=_PROBE_LIMIT_S + 20)
        said = done.stdout.decode("utf-8", "replace") + done.stderr
        found = profiler_log.read(said)
        denied = next((text for text in _DENIED if text in said), None)
        if denied is not None:
            keep(said)
            raise CaptureError(
                f"counters are not readable here: {found.errors[0] if found.errors else denied}",
                where=f"pod/{self.sister.pod}",
                hint="`solscope diagnose` on this bundle says who can allow it",
            )
        if found.kernels:
            return {"counters": "readable", "passes": found.passes[0]}
        if done.exit_code == scripts.BOUNDED_OUT:
            return {
                "counters": "undecided",
                "because": f"it did not end within {_PROBE_LIMIT_S:g} s: another ncu may hold its "
                "lock",
            }
        last = said.strip().splitlines()[-1:] or ["no output"]
        return {"counters": "undecided", "because": last[0][:300]}

    # -- open, drive, close ----------------------------------------------------------------------

    def open(self) -> Mapping[str, Any]:
        """Open it. Raises CaptureError where the server has no such endpoint."""
        if not self.has_endpoint:
            return {"window": self.plan.launches.window.value, "opened_by": "ncu's own filter"}
        body = _OPENING.get(self.engine or "", "")
        answer = self.sister.ask("POST", "/start_profile", body=body, limit_s=60)
        if answer.status is None or answer.status >= 300:
            raise CaptureError(
                f"/start_profile answered {answer.status}: {answer.body[:200]}",
                where=f"pod/{self.sister.pod}",
                hint="404 means that no profiler was configured when the server started: for vLLM "
                "before 0.13 give the right version in the image's tag",
            )
        return {"window": "engine-profiler", "status": answer.status}

    def drive(self, limit_s: float) -> Mapping[str, Any]:
        """Send requests until the planned launches are profiled.

        Raises CaptureError at ncu's first error, where the server ends, or after ``limit_s``.
        """
        wanted = self.plan.launches.wanted
        load = workload.Load(sister=self.sister, name="window")
        load.start(limit_s, limit_s)
        begun = time.monotonic()
        found = ProfilerLog()
        batches: tuple[workload.Batch, ...] = ()
        while time.monotonic() - begun < limit_s:
            time.sleep(POLL_S)
            try:
                found = self.log()
                self._check(found)
                if is_enough(found, self.plan.launches):
                    break
                self.sister.must_run()
                batches, runs = load.batches()
            except Unreachable:
                continue
            except CaptureError:
                # ncu may have ended the server since its log was read: its word goes first.
                self._check(self.log())
                raise
            workload.check(batches, self.sister)
            if not runs:
                load.start(limit_s, limit_s)
            self.tick(_progress(found, wanted))
        if not found.kernels:
            self.sister.must_run()
        load.stop()
        if not found.kernels:
            raise self._nothing(found, limit_s, len(batches))
        return {
            "kernels": found.kernels,
            "wanted": wanted,
            "passes": list(found.passes),
            "rounds": len(batches),
            "seconds": round(time.monotonic() - begun, 3),
        }

    def _check(self, found: ProfilerLog) -> None:
        if found.errors:
            raise CaptureError(
                f"ncu: {found.errors[0]}",
                where=f"pod/{self.sister.pod}",
                hint="the diagnosis beside this says why",
            )

    def _nothing(self, found: ProfilerLog, limit_s: float, rounds: int) -> CaptureError:
        where = f"pod/{self.sister.pod}"
        refused = None
        with contextlib.suppress(ClusterError, CaptureError):
            refused = _REFUSED.search(self.sister.log())
        if refused is not None:
            return CaptureError(
                f"the engine's profiler did not start: {refused[1].strip()[:300]}",
                where=where,
                hint="its endpoint answers 200 all the same; the log in the bundle says more",
            )
        if found.now is not None:
            return CaptureError(
                f"ncu did not finish {found.now!r} within {limit_s:g} s",
                where=where,
                hint="a kernel that waits for others hangs under replay: plan without it; "
                "if it is only slow, give a longer --window-limit",
            )
        ranges = ", ".join(f"NVTX range {name}" for name in self.plan.launches.nvtx_include)
        opened = f"does the engine push {ranges}, and " if ranges else ""
        return CaptureError(
            f"no launch matched within {limit_s:g} s and {rounds} rounds of requests",
            where=where,
            hint=f"{opened}does {self.plan.launches.kernel!r} name a kernel of this workload? a "
            "timeline or `solscope read` of an earlier report shows the names",
        )

    def close(self) -> Mapping[str, Any]:
        """Close it; a server that is gone has closed it."""
        if not self.has_endpoint:
            return {"closed_by": "the end of the server"}
        try:
            answer = self.sister.ask("POST", "/stop_profile", limit_s=_STOP_LIMIT_S)
        except (CaptureError, Unreachable) as error:
            # What was profiled is ncu's, and is written once the server ends.
            return {"status": None, "because": error.what}
        return {"status": answer.status}

    # -- the end of ncu --------------------------------------------------------------------------

    def finish(self, limit_s: float) -> Mapping[str, Any]:
        """End the server so that ncu writes its report, and wait for that.

        Raises CaptureError where ncu neither writes nor ends within ``limit_s``.
        """
        ended = self._signal("TERM")
        begun = time.monotonic()
        has_killed = False
        while time.monotonic() - begun < limit_s:
            time.sleep(POLL_S)
            try:
                found = self.log()
                over = self._is_over(found)
            except Unreachable:
                continue
            if over:
                return {"signalled": ended, "reports": list(found.reports)}
            self.tick("finish: waiting for ncu's report")
            if not has_killed and time.monotonic() - begun > min(60.0, limit_s / 2):
                self._signal("KILL")
                has_killed = True
        raise CaptureError(
            f"ncu wrote no report within {limit_s:g} s of the server's end",
            where=f"pod/{self.sister.pod}",
            hint="give a longer --finish-limit, or plan fewer launches",
        )

    def hear_out(self, limit_s: float) -> None:
        """End the server of a run that failed, and wait a moment for what ncu says of it."""
        self._signal("TERM")
        ends = time.monotonic() + limit_s
        while time.monotonic() < ends:
            time.sleep(POLL_S)
            with contextlib.suppress(Unreachable):
                if self._is_over(self.log()):
                    return

    def free_clocks(self, ncu: str) -> Mapping[str, Any]:
        """Unlock the GPU's clocks, which an ncu that is killed leaves locked.

        Raises CaptureError or ClusterError where that cannot be done from the sister any more.
        """
        limit_s = scripts.FREE_CLOCKS_S
        words = ("sh", "-c", scripts.BOUNDED, "sh", str(limit_s), ncu, "--clock-control", "reset")
        done = self.sister.exec(words, timeout_s=limit_s + 10)
        if done.exit_code != 0:
            said = (done.stdout.decode("utf-8", "replace") + done.stderr).strip()
            raise CaptureError(f"the clocks were not reset: {said[-300:]}")
        return {"clocks": "reset"}

    def has_ended_well(self) -> bool:
        """Whether ncu came to an end of its own, after which it leaves no clock locked."""
        found = self.log()
        return bool(found.reports) or found.has_none or found.has_disconnected

    def _is_over(self, found: ProfilerLog) -> bool:
        if found.reports or found.has_none:
            return True
        settings = self.sister.settings
        owner = (settings.sister_kind, settings.sister)
        pod = pods.require(self.sister.cluster, settings.experiment, owner)
        return bool(pods.state_of(pod, settings.container).get("terminated"))

    def _signal(self, signal: str) -> list[str]:
        try:
            done = self.sister.exec(("sh", "-c", scripts.END_SERVER, "sh", signal, scripts.NOTES))
        except (ClusterError, CaptureError):
            return []  # its container has ended already
        return done.stdout.decode("utf-8", "replace").split()


def is_enough(found: ProfilerLog, launches: LaunchFilter) -> bool:
    """Whether the planned launches are profiled: in all, or of each pattern.

    ncu prints function names; where patterns show more than those, only the sum can be told.
    """
    if not launches.counts_each or launches.name_base is not NameBase.FUNCTION:
        return found.kernels >= launches.wanted
    done = found.begun[: found.kernels]
    return all(
        sum(_matches(pattern, name) for name in done) >= launches.count
        for pattern in launches.patterns
    )


def _matches(pattern: str, name: str) -> bool:
    exact = pattern.removeprefix("exact:")
    return name == exact if exact != pattern else re.search(pattern, name) is not None


def _progress(found: ProfilerLog, wanted: int) -> str:
    now = f", replaying {found.now}" if found.now else ""
    passes = f", {found.passes[-1]} passes the last" if found.passes else ""
    return f"window: {found.kernels} of {wanted} launches profiled{passes}{now}"
