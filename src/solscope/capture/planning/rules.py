"""Rules that an ncu command line must keep, as findings. Pure: a command in, findings out.

Which combinations ncu refuses was seen with its command-line programs of 2020.3, 2022.3 and
2024.1; what leads to an empty or endless capture, in public problem reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from solscope.capture.planning.command import INTERPRETER_WRAPPERS
from solscope.model.finding import Finding, Severity

SHORT = {
    "-o": "--export",
    "-k": "--kernel-name",
    "-c": "--launch-count",
    "-s": "--launch-skip",
    "-f": "--force-overwrite",
    "-i": "--import",
}
FLAGS = frozenset(
    {
        "--nvtx",
        "--force-overwrite",
        "--csv",
        "--disable-extra-suffixes",
        "--disable-profiler-start-stop",
        "--verbose",
        "--quiet",
        "--list-sets",
        "--list-sections",
    }
)
SETS = ("basic", "default", "detailed", "full", "roofline", "source", "nvlink", "pmsampling")
NEVER_EXISTED = {
    "--attach": "use --mode launch for the server and --mode attach to profile it",
    "--roofline-min": "name the metrics: `solscope plan --level roofline` writes the list",
}
_APPLICATION_ONLY = (
    "--app-replay-mode",
    "--app-replay-match",
    "--app-replay-buffer",
)


def parse(argv: Sequence[str]) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """(options of an ncu command by their long names, the target with its arguments)."""
    rest = list(argv)
    while rest and (re.fullmatch(r"\w+=.*", rest[0]) or rest[0].rsplit("/", 1)[-1] == "ncu"):
        is_ncu = rest.pop(0).rsplit("/", 1)[-1] == "ncu"
        if is_ncu:
            break
    options: dict[str, list[str]] = {}
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, has_value, value = word.partition("=")
        name = SHORT.get(name, name)
        if has_value:
            options.setdefault(name, []).append(value)
        elif name in FLAGS or not rest:
            options.setdefault(name, []).append("")
        else:
            options.setdefault(name, []).append(rest.pop(0))
    return options, tuple(rest)


def check(argv: Sequence[str]) -> tuple[Finding, ...]:
    """Every rule that the command breaks; none for a sound one."""
    options, target = parse(argv)
    return (
        *_refused_options(options),
        *_combinations(options),
        *_counts(options),
        *_processes(options, target),
        *_collected(options),
        *_output(options),
    )


def _finding(code: str, where: str, fact: str, remedy: str, *, blocks: bool = True) -> Finding:
    severity = Severity.BLOCKS if blocks else Severity.WARNING
    return Finding(code=code, severity=severity, where=where, fact=fact, remedy=remedy)


def _refused_options(options: Mapping[str, list[str]]) -> Iterator[Finding]:
    for name, remedy in NEVER_EXISTED.items():
        if name in options:
            yield _finding("ncu-no-such-option", name, f"no ncu release has {name}", remedy)


def _combinations(options: Mapping[str, list[str]]) -> Iterator[Finding]:
    replay = (options.get("--replay-mode") or ["kernel"])[-1]
    graphs = (options.get("--graph-profiling") or ["node"])[-1]
    if graphs == "graph" and replay == "application":
        yield _finding(
            "ncu-graph-with-application-replay",
            "--graph-profiling",
            "whole graphs cannot be profiled under application replay",
            "--graph-profiling node, or --replay-mode kernel",
        )
    for name in ("--nvtx-include", "--nvtx-exclude"):
        if name in options and "--nvtx" not in options:
            yield _finding(
                "ncu-nvtx-filter-without-nvtx",
                name,
                "an NVTX filter has no effect without --nvtx",
                "add --nvtx",
            )
    for name in _APPLICATION_ONLY:
        if name in options and replay not in ("application", "app-range"):
            yield _finding(
                "ncu-application-option",
                name,
                f"{name} is not supported with --replay-mode {replay}",
                "--replay-mode application",
            )
    relaxed = (options.get("--app-replay-mode") or [""])[-1] == "relaxed"
    if relaxed and (options.get("--app-replay-buffer") or [""])[-1] == "memory":
        yield _finding(
            "ncu-relaxed-in-memory",
            "--app-replay-buffer",
            "--app-replay-mode relaxed is not supported with a buffer in memory",
            "--app-replay-buffer file",
        )
    if (options.get("--mode") or [""])[-1] == "launch" and replay == "application":
        yield _finding(
            "ncu-launch-mode-application-replay",
            "--mode",
            "--mode launch is not supported with application replay",
            "launch and attach in one command, which is the default",
        )
    per_config = (options.get("--filter-mode") or [""])[-1] == "per-launch-config"
    if per_config and "range" in replay:
        yield _finding(
            "ncu-per-launch-config-range",
            "--filter-mode",
            "--filter-mode per-launch-config is not supported with range replay",
            "--filter-mode global",
        )


def _counts(options: Mapping[str, list[str]]) -> Iterator[Finding]:
    if (options.get("--launch-count") or [""])[-1] == "0":
        yield _finding(
            "ncu-launch-count-zero",
            "--launch-count",
            "ncu refuses a launch count of zero",
            "a count of one or more, or none at all",
        )
    if "--kill" in options and "--launch-count" not in options:
        yield _finding(
            "ncu-kill-without-count",
            "--kill",
            "--kill needs a launch count that can be reached",
            "add --launch-count",
        )


def _processes(options: Mapping[str, list[str]], target: Sequence[str]) -> Iterator[Finding]:
    only_application = "application-only" in options.get("--target-processes", ())
    if not target:
        return
    program = target[0].rsplit("/", 1)[-1]
    wraps = program in (*INTERPRETER_WRAPPERS, "sh", "bash", "uv", "torchrun", "vllm", "sglang")
    if only_application and wraps:
        yield _finding(
            "ncu-kernels-in-child-process",
            "--target-processes",
            f"with application-only ncu profiles {program} itself; the GPU work is in its child"
            + (" (the EngineCore)" if program == "vllm" else f" ({program} wrapper)"),
            "--target-processes all, and set variables on the ncu process",
        )
    if any("ipykernel" in part for part in target):
        yield _finding(
            "ncu-notebook-target",
            "target",
            "a notebook's kernel cannot be started by ncu",
            "save the cells as a script and profile that",
        )


def _collected(options: Mapping[str, list[str]]) -> Iterator[Finding]:
    import difflib

    for name in options.get("--set", ()):
        if name not in SETS and not name.startswith("regex:"):
            near = difflib.get_close_matches(name, SETS, n=1)
            yield _finding(
                "ncu-unknown-section-set",
                "--set",
                f"no section set {name!r}: ncu warns, runs on, and collects nothing",
                f"--set {near[0]}" if near else f"one of {', '.join(SETS)}",
            )
    for metric in ",".join(options.get("--metrics", ())).split(","):
        if "*" in metric and not metric.startswith(("regex:", "group:", "breakdown:")):
            yield _finding(
                "ncu-metric-wildcard",
                "--metrics",
                f"{metric!r} is refused: ncu takes no shell wildcard",
                f"regex:{metric.replace('*', '.*')}, or the names written out",
            )


def _output(options: Mapping[str, list[str]]) -> Iterator[Finding]:
    export = options["--export"][-1] if "--export" in options else None
    follows_all = "all" in options.get("--target-processes", ())
    if export is not None and follows_all and "%p" not in export and "%i" not in export:
        yield _finding(
            "ncu-one-file-for-all-processes",
            "--export",
            "no %p in the name: the processes of the tree share one report file name",
            f"--export {export.removesuffix('.ncu-rep')}_%p.ncu-rep",
            blocks=False,
        )
