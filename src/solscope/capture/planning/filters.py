"""Which launches are profiled: kernel patterns, NVTX ranges, counts. Never collectives.

ncu serialises kernel launches over all processes that it profiles, and replays each of them: a
kernel that waits for a peer then waits for ever. Collectives are therefore left out of every
filter of kernel replay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from solscope.capture.planning import command
from solscope.capture.planning.question import Question
from solscope.errors import UsageError
from solscope.model.finding import Finding, Severity
from solscope.model.plan import PER_CONFIGURATION, LaunchFilter, NameBase, Strategy, Window

COLLECTIVE = re.compile(
    r"nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem|nvshmem|symm_?mem"
    r"|deep_?ep|(?:^|::|ep_|moe_|low_latency_)(?:dispatch|combine)(?:$|[^a-z])"
    r"|intranode|internode|lamport|cross_device_reduce|custom_ar|one_?shot|two_?shot"
    r"|barrier_kernel|send_?recv|p2p",
    re.IGNORECASE,
)
"""Names of kernels that wait for other ranks, in the libraries that serving engines use."""

_SERVER = re.compile(r"vllm|sglang|trtllm|tensorrt_llm|tritonserver")
_NO_ENDPOINT = ("tensorrt-llm", "dynamo-trtllm")
"""Engines whose server has no endpoint that calls ``cudaProfilerStart``."""
_TOGETHER = "global"

# Typical members of the families above: a pattern that would select one of them is refused too.
_SAMPLES = (
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "ncclKernel_AllGather_RING_LL_Sum_int8_t",
    "multimem_all_reduce_kernel",
    "cross_device_reduce_1stage",
    "two_shot_all_reduce_kernel",
    "deep_ep_internode_ll_dispatch",
    "deep_ep_intranode_combine",
    "nvshmemi_transfer_kernel",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The filter, the patterns left out of it and what there is to say."""

    filter: LaunchFilter
    findings: tuple[Finding, ...]


def choose(question: Question) -> Chosen:
    """The launch filter of a question.

    Raises UsageError for a launch count of zero (ncu refuses it) or a pattern that is none.
    """
    if question.launches < 1:
        raise UsageError(
            f"{question.launches} launches cannot be profiled",
            where="--launches",
            hint="ncu refuses a launch count of zero; 3 is usual",
        )
    if question.skip < 0:
        raise UsageError(f"cannot skip {question.skip} launches", where="--skip")
    findings: list[Finding] = []
    patterns = [_checked(pattern) for pattern in question.kernels]
    kept = patterns
    ranks = question.facts.tensor_parallel
    if question.replay_mode in ("kernel", "application") and ranks != 1:
        refuses = selects_collective if ranks is not None else names_collective
        kept = [p for p in patterns if not refuses(p)]
        findings += _left_out([p for p in patterns if p not in kept], kept)
        findings += _wide([p for p in kept if selects_collective(p)])
    findings += _unfiltered(question, patterns)
    findings += _autotuning(question, kept)
    mode = _mode(question, kept)
    findings += _counting(question, kept, mode)
    kernel, base = kernel_name(kept)
    return Chosen(
        filter=LaunchFilter(
            kernel=kernel,
            name_base=base,
            patterns=tuple(kept),
            skip=question.skip,
            count=question.launches,
            filter_mode=mode,
            nvtx_include=tuple(nvtx_range(r) for r in question.nvtx),
            window=_window(question),
        ),
        findings=tuple(findings),
    )


def of_each(filter: LaunchFilter) -> tuple[LaunchFilter, ...]:
    """A filter for each pattern alone, for plans that start the server once for each."""
    named = ((pattern, *kernel_name((pattern,))) for pattern in filter.patterns)
    return tuple(
        replace(filter, kernel=kernel, name_base=base, patterns=(pattern,), filter_mode=_TOGETHER)
        for pattern, kernel, base in named
    )


def _mode(question: Question, patterns: Sequence[str]) -> str:
    """Several kernels are counted each for itself, where ncu can and the plan wants one run."""
    is_alone = len(patterns) < 2 or question.runs_each
    can = command.counts_each(question.ncu_version)
    return PER_CONFIGURATION if can and not is_alone else _TOGETHER


def _window(question: Question) -> Window:
    if question.nvtx:
        return Window.NVTX
    if question.window is not None:
        return question.window
    if question.skip:
        return Window.LAUNCH_SKIP
    if question.strategy is Strategy.HARNESS:
        return Window.WHOLE_RUN
    if question.facts.engine in _NO_ENDPOINT or any("trtllm" in part for part in question.run):
        return Window.WHOLE_RUN
    # A program that is no server never calls cudaProfilerStart: its window would stay shut.
    is_server = not question.run or any(_SERVER.search(part) for part in question.run)
    return Window.ENGINE_PROFILER if is_server else Window.WHOLE_RUN


def _checked(pattern: str) -> str:
    """The pattern, if it is a regular expression or ``exact:NAME``."""
    text = pattern.strip().removeprefix("regex:")
    if not text or text == "exact:":
        raise UsageError("an empty kernel pattern", where="--kernels")
    if not text.startswith("exact:"):
        try:
            re.compile(text)
        except re.error as error:
            raise UsageError(
                f"not a regular expression: {text!r} ({error})",
                where="--kernels",
                hint=f"escape it, or write exact:{text} for that very name",
            ) from error
    return text


def names_collective(pattern: str) -> bool:
    """Whether a pattern is the name of a kernel that waits for other ranks."""
    return COLLECTIVE.search(pattern.removeprefix("exact:")) is not None


def selects_collective(pattern: str) -> bool:
    """Whether a pattern names, or is wide enough to match, such a kernel."""
    if names_collective(pattern) or pattern.startswith("exact:"):
        return names_collective(pattern)
    return any(re.search(pattern, sample) for sample in _SAMPLES)


def kernel_name(patterns: Sequence[str]) -> tuple[str | None, NameBase]:
    """(value of ``--kernel-name``, the name form it is compared with).

    The function name has neither template arguments nor a namespace, so a pattern that shows
    them must be compared with the demangled name.

    >>> kernel_name(["fused_moe_kernel", "nvjet_.*"])
    ('regex:fused_moe_kernel|nvjet_.*', <NameBase.FUNCTION: 'function'>)
    """
    if not patterns:
        return None, NameBase.FUNCTION
    base = _name_base(patterns)
    if len(patterns) == 1 and patterns[0].startswith("exact:"):
        return patterns[0].removeprefix("exact:"), base
    parts = [
        f"^{re.escape(p.removeprefix('exact:'))}$" if p.startswith("exact:") else p
        for p in patterns
    ]
    return "regex:" + "|".join(parts), base


def _name_base(patterns: Sequence[str]) -> NameBase:
    names = [p.removeprefix("exact:").lstrip("^") for p in patterns]
    if all(name.startswith("_Z") for name in names):
        return NameBase.MANGLED
    if any("::" in name or "<" in name or ", " in name for name in names):
        return NameBase.DEMANGLED
    return NameBase.FUNCTION


def nvtx_range(word: str) -> str:
    """An NVTX range as ncu wants it: push/pop ranges need the closing slash.

    ``start-end:NAME`` means a range of ``nvtxRangeStart``, which must have none. Raises
    UsageError for a name that is empty.

    >>> nvtx_range("decode_step")
    'decode_step/'
    """
    if not word.removeprefix("start-end:").strip(" /"):
        raise UsageError(
            f"{word!r} names no NVTX range",
            where="--nvtx",
            hint="give its name: --nvtx decode_step",
        )
    if word.startswith("start-end:"):
        return word.removeprefix("start-end:")
    is_push_pop = word.endswith(("/", "]")) or word.startswith("[") or "/" in word
    return word if is_push_pop else f"{word}/"


def _left_out(dropped: Sequence[str], kept: Sequence[str]) -> Iterator[Finding]:
    if not dropped:
        return
    yield Finding(
        code="plan-collective-kernel",
        severity=Severity.WARNING if kept else Severity.BLOCKS,
        where="--kernels",
        fact=(
            f"left out: {', '.join(dropped)}: ncu serialises launches over all ranks, and a "
            "kernel that waits for its peers never ends under replay"
        ),
        remedy=(
            "exclude nccl, all-reduce, dispatch and combine kernels from replay; time them with "
            "nsys, or replay one operation alone (`solscope sister --harness FILE.py`)"
        ),
    )


def _counting(question: Question, patterns: Sequence[str], mode: str) -> Iterator[Finding]:
    if len(patterns) < 2 or question.runs_each:
        return
    if mode == PER_CONFIGURATION:
        yield Finding(
            code="plan-count-per-kernel",
            severity=Severity.INFO,
            where="--launches",
            fact=(
                f"{question.launches} launches are counted for each kernel and grid; the window "
                "closes when each pattern has them"
            ),
            remedy="--runs each starts the server once for each pattern instead",
        )
        return
    yield Finding(
        code="plan-count-is-shared",
        severity=Severity.INFO,
        where="--launches",
        fact=(
            f"{question.launches} launches are counted over all {len(patterns)} patterns: "
            "the most frequent kernel may take them all"
        ),
        remedy="--runs each, ncu 2022.4 or newer, or more --launches",
    )


def _wide(patterns: Sequence[str]) -> Iterator[Finding]:
    if patterns:
        yield Finding(
            code="plan-pattern-wide",
            severity=Severity.WARNING,
            where="--kernels",
            fact=f"{', '.join(patterns)} would match collectives too, which never end under replay",
            remedy="narrow it (^name, exact:NAME), or say --tensor-parallel 1 where there are none",
        )


def _unfiltered(question: Question, patterns: Sequence[str]) -> Iterator[Finding]:
    if patterns or (not question.facts.target and not question.run):
        return
    ranks = question.facts.tensor_parallel
    is_many = ranks is not None and ranks > 1
    yield Finding(
        code="plan-no-kernel-filter",
        severity=Severity.BLOCKS if is_many else Severity.WARNING,
        where="--kernels",
        fact=(
            f"no kernel is named, and with {ranks} ranks the first launch may be a collective, "
            "which never ends under replay"
            if is_many
            else f"no kernel is named: the first {question.launches} launches of the window, "
            "whichever they are, will be profiled"
        ),
        remedy="name the hot kernels with --kernels (nsys or torch traces show them)",
    )


def _autotuning(question: Question, patterns: Sequence[str]) -> Iterator[Finding]:
    if _window(question) is not Window.WHOLE_RUN:
        return
    yield Finding(
        code="plan-warm-up-first",
        severity=Severity.INFO,
        where="--skip",
        fact=(
            "autotuning launches every candidate of a kernel: profiled, each costs all passes, "
            "and their mean describes none of them"
        ),
        remedy=(
            "open the window after warm-up (the engine's profiler endpoint), or skip the warm-up "
            "launches with --skip; judge the last or most frequent configuration"
        ),
    )
