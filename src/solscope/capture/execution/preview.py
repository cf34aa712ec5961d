"""A capture as the commands that it comes to, for those who must allow it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from solscope.capture.execution import scripts
from solscope.capture.execution.server import SIDECAR
from solscope.model.capture import CaptureSettings, PlannedStep
from solscope.model.plan import CapturePlan, Strategy, Window
from solscope.model.sister import Sister


def steps(
    settings: CaptureSettings, sister: Sister, plan: CapturePlan, ncu: str
) -> tuple[PlannedStep, ...]:
    """Every step of a run in its order, each with the command that does the same by hand."""
    return tuple(_steps(_Speller(settings), settings, sister, plan, ncu))


class _Speller:
    """kubectl command lines with context and namespace named."""

    def __init__(self, settings: CaptureSettings) -> None:
        context = settings.context
        named = ("--context", context) if context else ()
        self._start = ("kubectl", *named, "--namespace", settings.namespace)
        self._where = f"{settings.sister_kind.lower()}/{settings.sister}"
        self._base = f"http://127.0.0.1:{settings.port}"
        self._server = settings.container

    def kubectl(self, *words: str) -> str:
        return shlex.join((*self._start, *words))

    def inside(self, *words: str, container: str | None = None) -> str:
        return self.kubectl("exec", self._where, "-c", container or self._server, "--", *words)

    def ask(self, method: str, path: str) -> str:
        return self.inside("curl", "-X", method, self._base + path)


def _steps(
    say: _Speller, settings: CaptureSettings, sister: Sister, plan: CapturePlan, ncu: str
) -> Iterator[PlannedStep]:
    limits, traffic = settings.limits, settings.traffic
    selector = f"experiment={settings.experiment}"
    create = ("create", "-f", "capture/sister.yaml", "--validate=strict")
    yield PlannedStep(
        name="production-before",
        what="read generation, replicas, restarts and readiness of the target",
        command=say.kubectl("get", settings.workload, "-o", "json"),
    )
    yield PlannedStep(
        name="rehearse",
        what="ask the server about the bare pod and every object; nothing is kept",
        command=say.kubectl(*create, "--dry-run=server"),
    )
    made = ", ".join(f"{item['kind']}/{item['metadata']['name']}" for item in sister.objects)
    yield PlannedStep(name="create", what=f"create {made}", command=say.kubectl(*create))
    yield PlannedStep(
        name="start",
        what=f"wait until its containers run, {limits.schedule_s:g} s at most",
        command=say.kubectl("get", "pods", "-l", selector, "--watch"),
    )
    if plan.strategy in (Strategy.ATTACH, Strategy.PRELOAD):
        yield PlannedStep(
            name="attach",
            what="start the second ncu; the server stands still until it has attached",
            command=say.inside(*sister.attach_command, container=SIDECAR),
        )
    yield PlannedStep(
        name="ready",
        what=f"wait for the engine's own answer, {limits.ready_s:g} s at most",
        command=say.ask("GET", settings.health),
    )
    yield PlannedStep(
        name="warm-up",
        what=f"{traffic.concurrency} requests at a time of {traffic.isl} tokens in and "
        f"{traffic.osl} out, until throughput is steady, {limits.warm_up_s:g} s at most",
        command=say.ask("POST", "/v1/completions"),
    )
    yield PlannedStep(
        name="control-probe",
        what="profile one empty kernel with one metric: are counters readable?",
        command=say.inside(
            *(ncu, "--metrics", "sm__cycles_elapsed.max", "-c", "1", "python3", "-c", "..."),
        ),
    )
    yield from _window(say, settings, plan)
    yield PlannedStep(
        name="finish",
        what=f"end the server so that ncu writes its report, {limits.finish_s:g} s at most",
        command=say.inside("kill", "-TERM", "PID-OF-SERVER"),
    )
    report = f"{scripts.RESULTS}/{plan.output}"
    yield PlannedStep(
        name="collect",
        what="fetch reports by offset, compare sha256 with the sister's, rename",
        command=say.inside("tail", "-c", "+OFFSET", report, container=SIDECAR),
    )
    yield PlannedStep(
        name="inspect",
        what="open the reports: whole? kernels? the wanted ones? the wanted metrics? Then CSVs",
    )
    yield PlannedStep(
        name="cleanup",
        what="delete by name and uid, wait until gone, list by label: nothing may be left",
        command=say.kubectl("delete", f"{settings.sister_kind}/{settings.sister}"),
    )
    yield PlannedStep(
        name="production-after",
        what="compare the target with what it was",
        command=say.kubectl("get", settings.workload, "-o", "json"),
    )
    if settings.seal:
        yield PlannedStep(
            name="seal", what="digest every file, make the bundle read-only", command=None
        )


def _window(say: _Speller, settings: CaptureSettings, plan: CapturePlan) -> Iterator[PlannedStep]:
    has_endpoint = plan.launches.window is Window.ENGINE_PROFILER
    if has_endpoint:
        yield PlannedStep(
            name="open-window",
            what="the engine calls cudaProfilerStart",
            command=say.ask("POST", "/start_profile"),
        )
    yield PlannedStep(
        name="profile",
        what=f"the same requests until {plan.launches.count} launches are profiled, "
        f"{settings.limits.window_s:g} s at most",
        command=say.ask("POST", "/v1/completions"),
    )
    if has_endpoint:
        yield PlannedStep(
            name="close-window",
            what="the engine calls cudaProfilerStop",
            command=say.ask("POST", "/stop_profile"),
        )
