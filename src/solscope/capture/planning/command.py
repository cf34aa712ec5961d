"""The ncu command line of a plan, by the options that its release has."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from solscope.capture.planning.question import Question
from solscope.errors import UsageError
from solscope.model.plan import LaunchFilter, Strategy, Window

Release = tuple[int, int]

OLDEST_OPS_PATH: Release = (2024, 1)
_CONFIG_FILE: Release = (2023, 1)
_GRAPH_PROFILING: Release = (2022, 4)
_PER_CONFIGURATION: Release = (2022, 4)
_EXTRA_SUFFIXES: Release = (2024, 1)
_PIPELINE_BOOST: Release = (2025, 1)
_BOOST_CLOCK: Release = (2025, 4)
_KERNEL_NAME: Release = (2021, 1)
_BASIC: Release = (2023, 1)
_PORT = "49152"

INTERPRETER_WRAPPERS = ("env", "timeout", "nice", "numactl", "stdbuf", "taskset", "ionice")
_SHELLS = ("sh", "bash", "zsh", "dash")


def release_of(text: str | None) -> Release | None:
    """(year, number) of ``2026.1.1``; None where nothing was said. Raises UsageError."""
    if text is None:
        return None
    match = re.match(r"\s*(20\d\d)\.(\d+)", text)
    if match is None:
        raise UsageError(
            f"no ncu release called {text!r}", where="--ncu-version", hint="for example 2025.3"
        )
    return int(match[1]), int(match[2])


def _has(release: Release | None, since: Release) -> bool:
    # Unknown means a recent one: the tools that the sister brings are.
    return release is None or release >= since


def counts_each(version: str | None) -> bool:
    """Whether that release can count the launches of each kernel and grid for themselves."""
    return _has(release_of(version), _PER_CONFIGURATION)


def output_name(question: Question, filter: LaunchFilter) -> str:
    """A report name that says what it holds, with extension, one file per process.

    The digest keeps plans of different questions apart, so that no run overwrites another's.
    """
    what = f"{question.chip}|{question.metrics}|{filter}|{question.facts.target}"
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    name = question.metrics.section_set or question.level.value
    return f"solscope-{name}-{question.chip.lower()}-{digest}_%p.ncu-rep"


def arguments(question: Question, filter: LaunchFilter) -> tuple[str, ...]:
    """Options between ``ncu`` and the target, without ``--export``."""
    release = release_of(question.ncu_version)
    if not _has(release, _KERNEL_NAME):
        raise UsageError(
            f"ncu {question.ncu_version} is too old to plan for",
            where="--ncu-version",
            hint="bring a release of 2021.1 or newer into the sister",
        )
    if question.clock_control == "boost" and release is not None and release < _BOOST_CLOCK:
        raise UsageError(
            f"ncu {question.ncu_version} has no boost clock mode",
            where="--clock-control",
            hint="base or none; boost came with 2025.4",
        )
    parts = ["--config-file", "off"] if _has(release, _CONFIG_FILE) else []
    parts += ["--target-processes", "all"]
    parts += _window(filter)
    parts += _selection(filter)
    parts += ["--replay-mode", question.replay_mode]
    if _has(release, _GRAPH_PROFILING):
        parts += ["--graph-profiling", question.graph_profiling]
    parts += ["--cache-control", question.cache_control]
    parts += ["--clock-control", question.clock_control]
    if _has(release, _PIPELINE_BOOST):
        parts += ["--pipeline-boost-state", "stable"]
    # A server is stopped by a signal, and its exit code then says nothing of the capture.
    parts += ["--check-exit-code", "no"]
    return (*parts, *_collected(question, release))


def _window(filter: LaunchFilter) -> list[str]:
    if filter.window is Window.ENGINE_PROFILER:
        return ["--profile-from-start", "off"]
    if filter.window is Window.NVTX:
        ranges = [part for r in filter.nvtx_include for part in ("--nvtx-include", r)]
        return ["--nvtx", *ranges]
    return []


def _selection(filter: LaunchFilter) -> list[str]:
    parts: list[str] = []
    if filter.kernel is not None:
        parts += ["--kernel-name-base", filter.name_base.value, "--kernel-name", filter.kernel]
    if filter.skip:
        parts += ["--launch-skip", str(filter.skip)]
    if filter.counts_each:
        parts += ["--filter-mode", filter.filter_mode]
    return [*parts, "--launch-count", str(filter.count)]


def _collected(question: Question, release: Release | None) -> list[str]:
    wanted = question.metrics
    parts: list[str] = []
    if wanted.section_set is not None:
        name = wanted.section_set
        if name == "basic" and not _has(release, _BASIC):
            name = "default"
        parts += ["--set", name]
    for section in wanted.sections:
        parts += ["--section", section]
    if wanted.metrics:
        if _has(release, _EXTRA_SUFFIXES):
            parts.append("--disable-extra-suffixes")
        parts += ["--metrics", ",".join(wanted.metrics)]
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The program that ncu starts, with the wrapper taken off and its variables set aside."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    notes: tuple[str, ...] = ()


def unwrap(argv: Sequence[str]) -> Target:
    """Take ``env VAR=v`` off a command: its variables belong on the ncu process.

    Other wrappers stay (``--target-processes all`` follows their children) and are named.
    Raises UsageError for a target that ncu cannot start.
    """
    rest = list(argv)
    environment: dict[str, str] = {}
    notes: list[str] = []
    while rest and re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0], re.DOTALL):
        name, _, value = rest.pop(0).partition("=")
        environment[name] = value
    if rest and _program(rest[0]) == "env" and rest[1:2] != ["-i"]:
        rest.pop(0)
        while rest and re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0], re.DOTALL):
            name, _, value = rest.pop(0).partition("=")
            environment[name] = value
        notes.append("the env wrapper is taken off: its variables are set on the ncu process")
    if not rest:
        return Target(argv=(), environment=environment)
    if rest[0].endswith(".sh"):
        rest.insert(0, "/bin/bash")
        notes.append("a script is no program: its interpreter is put before it")
    elif rest[0].endswith(".py"):
        rest.insert(0, "python3")
        notes.append("a script is no program: its interpreter is put before it")
    program = _program(rest[0])
    if any("ipykernel" in part for part in rest):
        raise UsageError(
            "a notebook's kernel cannot be profiled: ncu must start the program itself",
            where="--run",
            hint="save the cells as a script and give that",
        )
    if program in _SHELLS or program in INTERPRETER_WRAPPERS:
        notes.append(f"{program} is a wrapper: its children are followed (all processes)")
    return Target(argv=tuple(rest), environment=environment, notes=tuple(notes))


def _program(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def command_line(
    strategy: Strategy,
    *,
    wrapper: Sequence[str],
    options: Sequence[str],
    output: str,
    target: Target,
) -> str:
    """One run's command as a shell line: variables, ncu, options, export, target.

    For an attach both commands, the waiting one first, as they must be started.
    """
    variables = [f"{k}={shlex.quote(v)}" for k, v in target.environment.items()]
    program = shlex.join(target.argv) if target.argv else "COMMAND ..."
    tail = ["--export", output]
    if strategy is Strategy.ATTACH:
        first = " ".join([*variables, shlex.join(["ncu", *wrapper]), program])
        return f"{first} &\n{shlex.join(['ncu', *options, *tail])}"
    if strategy is Strategy.PRELOAD:
        return shlex.join(["ncu", *options, *tail])
    return " ".join([*variables, shlex.join(["ncu", *options, *tail]), program])


def attach_options(options: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(options of the ncu that starts the server, options of the one that attaches)."""
    kept = list(options)
    at = kept.index("--target-processes")
    followed = kept[at : at + 2]
    del kept[at : at + 2]
    launch = ("--mode", "launch", *followed, "--port", _PORT)
    return launch, ("--mode", "attach", "--hostname", "127.0.0.1", "--port", _PORT, *kept)
