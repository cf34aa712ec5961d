"""Question in, plan out."""

from __future__ import annotations

from collections.abc import Iterator

from solscope.capture.planning import command, cost, filters, prize
from solscope.capture.planning.question import Question
from solscope.model.finding import Finding, Severity
from solscope.model.plan import CapturePlan, CaptureRun, LaunchFilter, Strategy, Window

ALWAYS_UNSET = ("CUDA_INJECTION64_PATH", "VLLM_TORCH_PROFILER_DIR")
"""One injection library per process; and a torch profiler behind /start_profile would take the
endpoint that must call ``cudaProfilerStart``."""

MIXED_SETS_LACK_WORK = ("basic", "default")


def decide(question: Question) -> CapturePlan:
    """The plan of a question; refused where a finding blocks.

    Raises UsageError for what cannot be planned at all.
    """
    worth = None
    if question.share is not None:
        worth = prize.of_share(question.share, question.min_win)
    chosen = filters.choose(question)
    strategy, reason = _strategy(question)
    target = command.unwrap(question.run)
    each = filters.of_each(chosen.filter) if question.runs_each else ()
    runs = tuple(_run(question, filter, strategy) for filter in each or (chosen.filter,))
    wrapper = _wrapper(question, chosen.filter, strategy)
    costs = cost.estimate(question, sum(run.launches.wanted for run in runs))
    findings = (
        *prize.findings(question, worth),
        *_given(question),
        *chosen.findings,
        *cost.findings(question, costs),
        *_modes(question, strategy),
        *_notes(target),
    )
    is_refused = any(finding.blocks for finding in findings)
    return CapturePlan(
        level=question.level,
        chip=question.chip,
        compute_capability=question.capability,
        dtype=question.dtype,
        target=question.facts.target,
        strategy=Strategy.NONE if is_refused else strategy,
        strategy_reason=_refusal(findings) if is_refused else reason,
        metrics=question.metrics,
        launches=chosen.filter,
        passes=question.passes,
        full_passes=question.full_passes,
        cost=costs,
        prize=worth,
        replay_mode=question.replay_mode,
        cache_control=question.cache_control,
        clock_control=question.clock_control,
        graph_profiling=question.graph_profiling,
        ncu_version=question.ncu_version,
        arguments=runs[0].arguments,
        wrapper_arguments=wrapper if strategy is Strategy.ATTACH else (),
        output=runs[0].output,
        command_line="\n".join(
            command.command_line(
                strategy,
                wrapper=wrapper,
                options=run.arguments,
                output=run.output,
                target=target,
            )
            for run in runs
        ),
        runs=runs if len(runs) > 1 else (),
        environment={**_environment(question, chosen.filter.window), **target.environment},
        unset=ALWAYS_UNSET,
        gpu_memory_utilization=question.gpu_memory_utilization,
        findings=findings,
    )


def _run(question: Question, filter: LaunchFilter, strategy: Strategy) -> CaptureRun:
    options = command.arguments(question, filter)
    if strategy in (Strategy.ATTACH, Strategy.PRELOAD):
        options = command.attach_options(options)[1]
    return CaptureRun(
        launches=filter, arguments=options, output=command.output_name(question, filter)
    )


def _wrapper(question: Question, filter: LaunchFilter, strategy: Strategy) -> tuple[str, ...]:
    """Options of the ncu that only starts the server; the same in every run."""
    if strategy not in (Strategy.ATTACH, Strategy.PRELOAD):
        return ()
    return command.attach_options(command.arguments(question, filter))[0]


def _refusal(findings: tuple[Finding, ...]) -> str:
    return "refused: " + "; ".join(f.code for f in findings if f.blocks)


def _strategy(question: Question) -> tuple[Strategy, str]:
    if question.strategy is not None:
        return question.strategy, question.strategy_reason or "asked for"
    return (
        Strategy.LAUNCH,
        "ncu starts the server and follows its processes; the window opens after warm-up",
    )


def _environment(question: Question, window: Window) -> dict[str, str]:
    """Variables that make a serving engine's workers profilable. Others ignore them."""
    variables = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
    if window is Window.ENGINE_PROFILER:
        # Releases before the profiler option read this; newer ones take --profiler-config.
        variables["VLLM_TORCH_CUDA_PROFILE"] = "1"
    is_server = bool(question.facts.target or question.run)
    return variables if is_server and question.strategy is not Strategy.HARNESS else {}


def _given(question: Question) -> Iterator[Finding]:
    """Findings of a preflight that the plan must carry."""
    yield from question.given_findings


def _notes(target: command.Target) -> Iterator[Finding]:
    for note in target.notes:
        yield Finding(
            code="plan-target-rewritten",
            severity=Severity.INFO,
            where="--run",
            fact=note,
            remedy="nothing to do",
        )


def _modes(question: Question, strategy: Strategy) -> Iterator[Finding]:
    yield from _replay(question)
    yield from _ranks(question, strategy)
    if question.graph_profiling == "graph" and question.replay_mode == "application":
        yield Finding(
            code="plan-invalid",
            severity=Severity.BLOCKS,
            where="--graph-profiling",
            fact="ncu cannot profile whole graphs under application replay",
            remedy="--graph-profiling node",
        )
    if question.metrics.section_set in MIXED_SETS_LACK_WORK:
        yield Finding(
            code="plan-set-lacks-roofline",
            severity=Severity.WARNING,
            where="--set",
            fact="the basic set counts neither FLOP nor DRAM bytes: no roofline comes of it",
            remedy="--level roofline costs fewer passes and has both",
        )
    release = command.release_of(question.ncu_version)
    has_tensor = any("ops_path_tensor" in metric for metric in question.metrics.metrics)
    if has_tensor and release is not None and release < command.OLDEST_OPS_PATH:
        yield Finding(
            code="plan-ncu-lacks-tensor-counters",
            severity=Severity.BLOCKS,
            where="--ncu-version",
            fact=f"ncu {question.ncu_version} does not know the tensor operation counters",
            remedy="bring ncu 2024.1 or newer",
        )
    if strategy is Strategy.PRELOAD:
        yield Finding(
            code="plan-preload-unverified",
            severity=Severity.WARNING,
            where="strategy",
            fact=(
                "no ncu release is known to open an endpoint by an injection variable; a process "
                "that was not started under ncu cannot be attached to"
            ),
            remedy="probe the endpoint first: `ncu --mode attach` must list the process",
        )


def _replay(question: Question) -> Iterator[Finding]:
    if question.replay_mode != "application":
        return
    yield Finding(
        code="plan-application-replay",
        severity=Severity.WARNING,
        where="--replay-mode",
        fact=(
            "application replay runs the program once for each pass and matches kernels between "
            "runs: batching, autotuning or random routing change them, and unmatched ones drop out"
        ),
        remedy=(
            "a deterministic offline driver (fixed prompts and seed), matching by grid; "
            "--app-replay-mode relaxed only with the matched fraction reported"
        ),
    )


def _ranks(question: Question, strategy: Strategy) -> Iterator[Finding]:
    ranks = question.facts.tensor_parallel
    if ranks is None or ranks < 2:
        return
    if strategy is Strategy.HARNESS:
        yield Finding(
            code="plan-stand-in",
            severity=Severity.INFO,
            where="tensor parallel",
            fact=f"a stand-in: 1 of {ranks} ranks, without the waits for its peers",
            remedy="draw no conclusion about communication from it",
        )
        return
    yield Finding(
        code="plan-many-ranks",
        severity=Severity.WARNING,
        where="tensor parallel",
        fact=(
            f"{ranks} ranks under one profiler: launches are serialised over all of them, and "
            "heartbeats and RPC time-outs run on"
        ),
        remedy=(
            "TP=1 or eager mode where the model fits, compute kernels only, and raised engine "
            "time-outs; else one operation alone (`solscope sister --harness FILE.py`)"
        ),
    )
