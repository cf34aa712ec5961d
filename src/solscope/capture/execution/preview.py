"""A capture as the commands that it comes to, for those who must allow it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from solscope.capture.execution import scripts
from solscope.capture.execution.spelling import Speller
from solscope.capture.execution.stage import file_of
from solscope.capture.execution.window import PROBE
from solscope.model.capture import CaptureSettings, PlannedStep
from solscope.model.plan import CapturePlan, Strategy, Window
from solscope.model.sister import Sister


def steps(
    settings: CaptureSettings, sisters: Sequence[Sister], plan: CapturePlan
) -> tuple[PlannedStep, ...]:
    """Every step of a run in its order, each with the command that does the same by hand."""
    return tuple(_steps(Speller(settings), settings, sisters, plan))


def _steps(
    say: Speller, settings: CaptureSettings, sisters: Sequence[Sister], plan: CapturePlan
) -> Iterator[PlannedStep]:
    yield _step(
        "production-before",
        "read generation, replicas, restarts and readiness of the target",
        say.target("-o", "json"),
    )
    yield _step(
        "rights",
        "ask for each right that the run needs",
        say.kubectl("auth", "can-i", "--list"),
    )
    plans = plan.each()
    remove = say.kubectl("delete", f"{settings.sister_kind}/{settings.sister}")
    for number, (one, sister) in enumerate(zip(plans, sisters, strict=True), 1):
        for step in _stage(say, settings, sister, one, number):
            yield step if number == 1 else replace(step, name=f"{step.name}-{number}")
        if number < len(plans):
            name = "remove" if number == 1 else f"remove-{number}"
            yield _step(name, "delete it, and wait until it is gone, before the next run", remove)
    yield _step(
        "inspect",
        "open the reports: whole? kernels? the wanted ones? the wanted metrics? Then CSVs",
    )
    yield _step(
        "cleanup",
        "delete by name and uid, wait until gone, list by label: nothing may be left",
        remove,
    )
    yield _step("production-after", "compare the target with what it was", say.target("-o", "json"))
    if settings.seal:
        yield _step("seal", "digest every file, make the bundle read-only")


def _stage(
    say: Speller, settings: CaptureSettings, sister: Sister, plan: CapturePlan, number: int
) -> Iterator[PlannedStep]:
    limits, traffic = settings.limits, settings.traffic
    manifest = file_of("capture/sister.yaml", number)
    yield _step(
        "rehearse",
        "ask the server about the bare pod and every object; nothing is kept",
        say.create(manifest, "--dry-run=server"),
    )
    made = ", ".join(f"{item['kind']}/{item['metadata']['name']}" for item in sister.objects)
    yield _step("create", f"create {made}", say.create(manifest))
    yield _step(
        "start",
        f"wait until its containers run, {limits.schedule_s:g} s at most",
        say.pods("--watch"),
    )
    if plan.strategy in (Strategy.ATTACH, Strategy.PRELOAD):
        yield _step(
            "attach",
            "wait until its port is listened on, start the second ncu, wait until it has attached",
            say.beside(*sister.attach_command),
        )
    yield _step(
        "ready",
        f"wait for the engine's own answer, {limits.ready_s:g} s at most",
        say.ask("GET", settings.health),
    )
    yield _step(
        "warm-up",
        f"{traffic.concurrency} requests at a time of {traffic.isl} tokens in and "
        f"{traffic.osl} out, until throughput is steady, {limits.warm_up_s:g} s at most",
        say.ask("POST", "/v1/completions"),
    )
    probe = (settings.ncu, *PROBE, "-c", "1")
    yield _step(
        "control-probe",
        "profile one empty kernel with one metric: are counters readable?",
        say.inside(*probe, "python3", "-c", "..."),
    )
    yield from _window(say, settings, plan)
    yield _step(
        "finish",
        f"end the server so that ncu writes its report, {limits.finish_s:g} s at most",
        say.inside("kill", "-TERM", "PID-OF-SERVER"),
    )
    yield _step(
        "collect",
        "fetch reports by offset, compare sha256 with the sister's, rename",
        say.beside("tail", "-c", "+OFFSET", f"{scripts.RESULTS}/{plan.output}"),
    )


def _window(say: Speller, settings: CaptureSettings, plan: CapturePlan) -> Iterator[PlannedStep]:
    has_endpoint = plan.launches.window is Window.ENGINE_PROFILER
    if has_endpoint:
        yield _step(
            "open-window", "the engine calls cudaProfilerStart", say.ask("POST", "/start_profile")
        )
    yield _step(
        "profile",
        f"the same requests until {plan.launches.wanted} launches are profiled, "
        f"{settings.limits.window_s:g} s at most",
        say.ask("POST", "/v1/completions"),
    )
    if has_endpoint:
        yield _step(
            "close-window", "the engine calls cudaProfilerStop", say.ask("POST", "/stop_profile")
        )


def _step(name: str, what: str, argv: Sequence[str] | None = None) -> PlannedStep:
    return PlannedStep(name=name, what=what, command=None if argv is None else shlex.join(argv))
