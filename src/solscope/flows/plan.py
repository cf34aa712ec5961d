"""``solscope plan``: what to capture, how, and what it will cost, before anything is touched."""

from __future__ import annotations

import json
import math
import os
import shlex
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from solscope.capture import metriclists, passes, planfile, planning
from solscope.capture.planning import evidence
from solscope.errors import UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.plan import Level, MetricList, PassEstimate, Strategy, Window
from solscope.render import plan as page

_POSITIVE = (
    "kernel_time_us",
    "memory_gb",
    "host_memory_gb",
    "probe_budget_s",
    "max_time_s",
    "tensor_parallel",
    "gpu_memory_utilization",
)
Counters = passes.LibraryCounters | passes.TableCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Plan a capture: metric list, predicted replay passes, pause, memory, ncu command.

    Works with no workload at all: `solscope plan --chip H200 --level roofline --dtype bf16`.
    Exit code 1 means refused: the reasons are findings.
    """

    target: str | None = option(
        "The workload that the plan is for, as kind/name; only named in the plan.",
        default=None,
        positional=True,
    )
    level: Literal["time", "roofline", "why", "full"] = option(
        "The question: time; roofline (FLOP, bytes, what binds); why (stalls too); full.",
        default="roofline",
    )
    chip: str | None = option("Chip, product or capability: GH100, H200, 9.0.", default=None)
    dtype: str | None = option(
        "Data type of the tensor work (bf16, fp8, fp4 ...); without it, scalar work only.",
        default=None,
    )
    kernels: tuple[str, ...] = option(
        "Regular expression on the kernel's name, or exact:NAME. May be repeated.", default=()
    )
    share: float | None = option("The kernels' share of end-to-end time, 0 to 1.", default=None)
    min_win: float = option("Refuse where no fix can win this share.", default=0.02)
    budget: Path | None = option("A decode-step budget: host-bound refuses.", default=None)
    tier: Literal["decode", "prefill"] = option("What the work is for.", default="decode")
    metrics: tuple[str, ...] = option(
        "Cost this list instead: full metric names, comma-separated.", default=()
    )
    set: str | None = option("Cost this section set of ncu instead.", default=None)
    launches: int = option("Launches to profile: of each kernel, where several.", default=3)
    runs: Literal["one", "each"] = option(
        "Several kernels: all in one run, or a run of its own for each.", default="one"
    )
    skip: int = option("Matching launches to skip first (warm-up).", default=0)
    nvtx: tuple[str, ...] = option("Profile inside this NVTX range. May be repeated.", default=())
    window: Literal["engine-profiler", "whole-run"] | None = option(
        "What opens the window: the engine's profiler endpoint (cudaProfilerStart), or nothing. "
        "By default the endpoint for a server, else the whole run.",
        default=None,
    )
    kernel_time_us: float | None = option("Time of one launch in µs.", default=None)
    memory_gb: float | None = option("Device memory in use, GB.", default=None)
    host_memory_gb: float | None = option("Host memory the sister may use, GB.", default=None)
    probe_budget_s: float | None = option(
        "How long the liveness probe lets the target be silent, in s.", default=None
    )
    tensor_parallel: int | None = option("Ranks of the engine.", default=None, alias="--tp")
    gpu_memory_utilization: float | None = option(
        "Lower the sister's memory fraction to this.", default=None
    )
    max_time_s: float = option("Refuse a capture that takes longer, in s.", default=900.0)
    ncu_version: str | None = option("The ncu release that will run.", default=None)
    replay_mode: Literal["kernel", "application", "range", "app-range"] = option(
        "How ncu repeats a kernel.", default="kernel"
    )
    cache_control: Literal["all", "none"] = option("Flush caches before passes.", default="all")
    clock_control: Literal["base", "none", "boost"] = option("Clock during passes.", default="base")
    graph_profiling: Literal["node", "graph"] = option("CUDA graphs.", default="node")
    strategy: Literal["launch", "attach", "preload", "harness"] | None = option(
        "Way in; by default the preflight's, else launch.", default=None
    )
    run: str | None = option("The server's command line, to be put after ncu's.", default=None)
    preflight: Path | None = option("Answer of `solscope preflight`, as JSON.", default=None)
    no_library: bool = option("Predict from the shipped table alone.", default=False)
    output: Path | None = option("Write the plan (JSON) here.", default=None, alias="-o")
    format: Literal["table", "json"] = option("Output format.", default="table")


def run(request: PlanRequest, world: World) -> Outcome:
    """Resolve chip and list, predict passes, decide, and write the plan if told where."""
    _check(request)
    checked = _preflight(request)
    chip = _chip(request, checked)
    counters = passes.counters_of(chip.name, prefer_table=request.no_library)
    family = chip.family or chip.name
    wanted = _metric_list(request, chip.name, counters)
    full = MetricList(name="full", chip=chip.name, section_set="full")
    question = planning.Question(
        level=Level(request.level),
        chip=chip.name,
        capability=chip.capability,
        dtype=wanted.dtype,
        metrics=wanted,
        passes=passes.of_list(wanted, counters, family=family),
        full_passes=_full(full, wanted, counters, family),
        share=request.share,
        min_win=request.min_win,
        is_decode=request.tier == "decode",
        kernels=request.kernels,
        launches=request.launches,
        runs_each=request.runs == "each",
        skip=request.skip,
        nvtx=request.nvtx,
        replay_mode=request.replay_mode,
        cache_control=request.cache_control,
        clock_control=request.clock_control,
        graph_profiling=request.graph_profiling,
        ncu_version=request.ncu_version,
        run=_words(request.run),
        window=None if request.window is None else Window(request.window),
        strategy=_strategy(request, checked),
        strategy_reason=None if checked is None or request.strategy else checked.reason,
        max_time_s=request.max_time_s,
        gpu_memory_utilization=request.gpu_memory_utilization,
        facts=_facts(request, checked),
        given_findings=() if checked is None else checked.findings,
    )
    plan = planning.decide(question)
    raw = planfile.to_json(plan)
    if request.output is not None:
        _write(request.output, raw)
    text = raw.decode().rstrip() if request.format == "json" else page.page(plan, world.width)
    return Outcome(
        value=plan,
        text=text,
        exit_code=1 if plan.is_refused or wanted.unknown else 0,
        files=() if request.output is None else (str(request.output),),
    )


def _check(request: PlanRequest) -> None:
    """Refuse what no plan can mean."""
    if request.target is not None and "/" not in request.target:
        raise UsageError(
            f"{request.target!r} names no workload",
            hint="write kind/name, and repeat --kernels for each pattern",
        )
    for name in _POSITIVE:
        value = getattr(request, name)
        if value is not None and not 0 < value < math.inf:
            option_name = "--" + name.replace("_", "-")
            raise UsageError(f"{value:g} is no positive number", where=option_name)
    fraction = request.gpu_memory_utilization
    if fraction is not None and fraction > 1:
        raise UsageError(f"{fraction:g} is no fraction", where="--gpu-memory-utilization")


def _words(line: str | None) -> tuple[str, ...]:
    """A command line's words. Raises UsageError for an open quote."""
    try:
        return tuple(shlex.split(line or ""))
    except ValueError as error:
        raise UsageError(f"no shell command: {error}", where="--run") from error


def _full(
    full: MetricList, wanted: MetricList, counters: Counters, family: str
) -> PassEstimate | None:
    """What the full set would take, unless it is what was asked."""
    is_same = wanted.section_set == full.section_set
    return None if is_same else passes.of_list(full, counters, family=family)


def _preflight(request: PlanRequest) -> evidence.Preflighted | None:
    if request.preflight is None:
        return None
    document = _json(request.preflight)
    return evidence.of_preflight(document, where=str(request.preflight), workload=request.target)


def _chip(request: PlanRequest, checked: evidence.Preflighted | None) -> metriclists.ChipName:
    word = request.chip or (checked.chip if checked is not None else None)
    if word is None:
        raise UsageError(
            "no chip named, and passes differ by chip",
            where="--chip",
            hint="--chip H200, or --preflight FILE.json of a workload whose node could be read",
        )
    chip = metriclists.identify(word)
    if chip.uncovered is not None:
        raise UsageError(f"no pass is known for {chip.name}: {chip.uncovered}", where="--chip")
    return chip


def _metric_list(request: PlanRequest, chip: str, counters: Counters) -> MetricList:
    """The user's own list or set, else that of the level."""
    own = tuple(m.strip() for part in request.metrics for m in part.split(",") if m.strip())
    if own and request.set is not None:
        raise UsageError("--metrics and --set together", hint="cost one after the other")
    if request.set is not None:
        return MetricList(name=f"set/{request.set}", chip=chip, section_set=request.set)
    if own:
        checked = passes.check(own, counters)
        return MetricList(
            name="--metrics", chip=chip, metrics=checked.known, unknown=checked.unknown
        )
    dtype = None if request.dtype is None else metriclists.dtype_named(request.dtype)
    level, names = Level(request.level), counters.base_names
    if isinstance(counters, passes.LibraryCounters):
        cost = counters.count
        return metriclists.for_level(level, chip=chip, dtype=dtype, base_names=names, cost=cost)
    tensor = None if dtype is None else counters.tensor(dtype)
    return metriclists.for_level(level, chip=chip, dtype=dtype, base_names=names, tensor=tensor)


def _strategy(request: PlanRequest, checked: evidence.Preflighted | None) -> Strategy | None:
    if request.strategy is not None:
        return Strategy(request.strategy)
    return None if checked is None else checked.strategy


def _facts(request: PlanRequest, checked: evidence.Preflighted | None) -> planning.Facts:
    """The preflight's facts, overlaid with what the user said."""
    facts = planning.Facts() if checked is None else checked.facts
    said: dict[str, Any] = {
        "target": facts.target or request.target,
        "resident_bytes": _scaled(request.memory_gb, 1e9),
        "host_free_bytes": _scaled(request.host_memory_gb, 1e9),
        "probe_budget_s": request.probe_budget_s,
        "tensor_parallel": request.tensor_parallel,
        "kernel_time_s": _scaled(request.kernel_time_us, 1e-6),
    }
    if request.memory_gb is not None:
        said["sources"] = ("--memory-gb",)
    if request.budget is not None:
        document = _json(request.budget)
        said["budget_verdict"] = evidence.verdict_of_budget(document, where=str(request.budget))
    return replace(facts, **{key: value for key, value in said.items() if value is not None})


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path)) from error
    except ValueError as error:
        raise UsageError(f"not JSON: {error}", where=str(path)) from error


def _write(path: Path, raw: bytes) -> None:
    """Write the plan whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
        os.replace(name, path)
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path)) from error
