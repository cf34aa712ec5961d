"""A profiler's command line, taken apart into facts before it runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch

from solscope.capture.diagnosis import shell
from solscope.capture.diagnosis.knowledge import numbers_of
from solscope.capture.diagnosis.options import OPTIONS, SHORT, Option
from solscope.capture.diagnosis.scanning import Facts

Say = Callable[..., None]
"""Adds a fact of this command: code, text, fields by name."""

# Programs that start the real target as a child or replace themselves by it.
WRAPPERS = frozenset({
    "accelerate", "bash", "catchsegv", "chrt", "conda", "dash", "deepspeed", "dumb-init", "env",
    "ionice", "make", "micromamba", "mpiexec", "mpirun", "nice", "nohup", "numactl", "pipx",
    "poetry", "setsid", "sh", "srun", "stdbuf", "strace", "sudo", "taskset", "time", "timeout",
    "tini", "torchrun", "uv", "uvx", "xvfb-run", "zsh",
})  # fmt: skip
SERVERS = ("vllm", "sglang", "trtllm-serve", "tritonserver", "lmdeploy", "text-generation-launcher")
_VALUE_OPTIONS = {
    "timeout": ("-k", "-s"),
    "numactl": ("-N", "-m", "-C", "-i"),
    "nice": ("-n",),
    "env": ("-u", "-C"),
    "sudo": ("-u", "-g"),
    "mpirun": ("-n", "-np", "-H", "--host", "-x"),
    "mpiexec": ("-n", "-np"),
    "srun": ("-n", "-N", "-p", "-w"),
    "torchrun": ("--nproc_per_node", "--nproc-per-node", "--nnodes", "--master_port"),
}
_ONE_WORD_RUNNERS = {"uv": "run", "poetry": "run", "conda": "run", "accelerate": "launch"}

_SHORTEST_BEGINNING = 5  # of an abbreviated long option, its dashes included

# Long options that no server has: behind the target they are the target's own words.
_NCU_ALONE = frozenset({
    "app-replay-buffer", "app-replay-match", "app-replay-mode", "cache-control", "clock-control",
    "force-overwrite", "graph-profiling", "import-source", "kernel-id", "kernel-name",
    "kernel-name-base", "launch-count", "launch-skip", "launch-skip-before-match",
    "nvtx-exclude", "nvtx-include", "profile-from-start", "range-filter", "replay-mode",
    "target-processes", "target-processes-filter",
})  # fmt: skip
_METRIC = re.compile(r"[a-z0-9]+__\w+(\.\w+)*,?")

_NSYS_WITH_VALUE = ("-o", "-t", "-s", "-c", "-w", "-f", "--output", "--trace", "--capture-range")

ALL_BY_DEFAULT = (2023, 3)  # --target-processes all, by the release notes

_START = re.compile(
    r"^\s*(?:[$#+>]\s+)?(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*(?:sudo\s+(?:-\S+\s+)*)?"
    r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)*((?:\S*/)?(?:ncu|nv-nsight-cu-cli|nsys))\s+(?=-|profile)"
)


@dataclass(slots=True)
class Command:
    """A parsed command: the tool, its options in order, the words of the target."""

    tool: str
    text: str
    where: str
    options: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    capture_range: str | None = None
    launcher: tuple[str, int] | None = None
    broken: str | None = None

    def value(self, name: str) -> str | None:
        """The last value given to an option."""
        found = [value for key, value in self.options if key == name]
        return found[-1] if found else None


def find(text: str, name: str) -> list[Command]:
    """The profiler commands that a text holds, continuation lines joined."""
    found: list[Command] = []
    begun = 0
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        begun = begun if parts else number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        whole = " ".join([*parts, line])
        parts = []
        if _START.match(whole):
            found.append(parse(whole, f"{name}:{begun}"))
    return found


def parse(text: str, where: str) -> Command:
    """Take one command line apart. A line that a shell would refuse is ``broken``."""
    try:
        before, words = shell.split(text)
    except ValueError as error:
        return Command(tool="ncu", text=text, where=where, broken=str(error))
    pairs = [word.partition("=") for word in before if not word.startswith("-")]
    environment = {name: value for name, sign, value in pairs if sign}
    tool = shell.tool_of(words.pop(0)) if words else ""
    command = Command(tool=tool, text=text, where=where, environment=environment, before=before)
    command.launcher = shell.ranks_of(before)
    if tool.startswith("nsys"):
        _parse_other(words, command)
    else:
        _parse_ncu(words, command)
    return command


def _parse_ncu(words: list[str], command: Command) -> None:
    while words:
        word = words.pop(0)
        if word == "--":
            command.target = words
            return
        if not word.startswith("-") or word == "-":
            command.target = [word, *words]
            return
        name, sign, value = word.partition("=")
        option = _option(name)
        if option is None and not word.startswith("--") and len(word) > 2:
            option, sign, value = SHORT.get(word[1]), "=", word[2:].removeprefix("=")
        if option is None:
            command.unknown.append(name)
            if not sign and words and not words[0].startswith("-") and len(words) > 1:
                words.pop(0)
            continue
        if option.takes_value and not sign:
            value = words.pop(0) if words else ""
        command.options.append((option.name, value))


def _option(name: str) -> Option | None:
    """The option of that name; a beginning that only one option has stands for it, as ncu takes
    it (NVIDIA's own examples write `--device`)."""
    if not name.startswith("--"):
        return SHORT.get(name[1:])
    if name[2:] in OPTIONS or len(name) < _SHORTEST_BEGINNING:
        return OPTIONS.get(name[2:])
    begun = [o for o in OPTIONS.values() if o.name.startswith(name[2:]) and not o.never]
    return begun[0] if len(begun) == 1 else None


def _parse_other(words: list[str], command: Command) -> None:
    """Options of another profiler are kept as they are; the target is the first plain word."""
    if words and words[0] == "profile":
        words.pop(0)
    while words and words[0].startswith("-"):
        name, sign, value = words.pop(0).partition("=")
        if name in _NSYS_WITH_VALUE and not sign and words:
            value = words.pop(0)
        if name in ("-c", "--capture-range"):
            command.capture_range = value
    command.target = words


def state(command: Command, facts: Facts, version: str | None) -> None:
    """Add the facts of a command: its options, its wrappers, its doubtful values."""
    where = command.where

    def say(code: str, text: str, **fields: str) -> None:
        facts.add(code, where, text, fields)

    if command.broken:
        say("broken-command", command.broken, why=command.broken)
        return
    if not command.tool:
        say("no-profiler", command.text, why="none of its words is ncu or nsys")
        return
    target = " ".join(command.target[:4])
    say("command", f"{command.tool} … {target}", tool=command.tool, target=target)
    for name, value in command.options:
        text = f"--{name} {value}".strip()
        facts.add(f"opt-{name}", where, text, {"value": value})
        _state_version(OPTIONS[name], text, version, say)
        _state_value(OPTIONS[name], value, text, say)
    for name in command.unknown:
        near = difflib.get_close_matches(name.lstrip("-"), OPTIONS, n=1, cutoff=0.6)
        say("unknown-option", name, name=name, nearest=f"--{near[0]}" if near else "none")
    is_old = version is not None and numbers_of(version)[:2] < ALL_BY_DEFAULT
    if is_old and command.tool == "ncu" and command.value("target-processes") is None:
        say("default-application-only", f"ncu {version}", version=str(version))
    _state_target(command, say)
    if command.capture_range:
        kind = command.capture_range
        say("nsys-capture-range", f"--capture-range={kind}", kind=kind)
    if not command.tool.startswith("nsys"):
        _state_output(command, say)


def _state_version(option: Option, text: str, version: str | None, say: Say) -> None:
    name = f"--{option.name}"
    instead = option.instead or "see --help"
    if option.never:
        say(
            "option-removed",
            text,
            name=name,
            gone="never existed",
            version=version or "any release",
            instead=instead,
        )
        return
    have = numbers_of(version)[:2] if version else None
    if option.gone and (have is None or have >= numbers_of(option.gone)):
        say(
            "option-removed",
            text,
            name=name,
            gone=f"removed in {option.gone}",
            version=version or "current releases",
            instead=instead,
        )
    if option.since and have is not None and have < numbers_of(option.since):
        instead = option.before or "a newer ncu, or do without it"
        say("option-too-new", text, name=name, since=option.since, version=version, instead=instead)


def _state_value(option: Option, value: str, text: str, say: Say) -> None:
    """A value that is none of an option's words."""
    if not option.values or any(fnmatch(value.lower(), word) for word in option.values):
        return
    near = difflib.get_close_matches(value.lower(), option.values, n=1, cutoff=0.4)
    nearest = near[0] if near else option.values[0]
    allowed = ", ".join(option.values)
    name = f"--{option.name}"
    say("option-value-bad", text, name=name, value=value, allowed=allowed, nearest=nearest)


def real_target(words: list[str]) -> tuple[list[str], list[str]]:
    """The wrappers in front of a target, and the words of the target behind them."""
    wrappers: list[str] = []
    rest = list(words)
    while rest:
        base = rest[0].rsplit("/", 1)[-1]
        if base not in WRAPPERS:
            break
        wrappers.append(base)
        rest = rest[1:]
        if base in _ONE_WORD_RUNNERS and rest and rest[0] == _ONE_WORD_RUNNERS[base]:
            rest = rest[1:]
        if base in ("bash", "sh", "zsh", "dash") and "-c" in rest[:3]:
            inner = rest[rest.index("-c") + 1 :]
            rest = inner[0].split() if inner else []
            rest = rest[1:] if rest[:1] == ["exec"] else rest
            continue
        while rest and (rest[0].startswith("-") or "=" in rest[0].split("/")[0]):
            taken = 2 if rest[0] in _VALUE_OPTIONS.get(base, ()) else 1
            rest = rest[taken:]
        if base in ("timeout", "nice", "taskset") and rest and rest[0][:1].isdigit():
            rest = rest[1:]
    return wrappers, rest


def _state_target(command: Command, say: Say) -> None:
    wrappers, real = real_target(command.target)
    program = real[0].rsplit("/", 1)[-1] if real else ""
    if wrappers:
        say("wrapper", " ".join(command.target[:3]), name=wrappers[0], real=program or "?")
    text = " ".join(real[:8])
    server = next((s for s in SERVERS if program == s or f" {s}" in f" {text}"), None)
    if server and real[1:2] == ["bench"]:
        server = None  # an offline benchmark, which ends by itself
    if server or re.search(r"\bserve\b|api_server|launch_server", text):
        say("target-is-server", text, name=server or program)
    if re.search(r"\bserve\b|-serve\b|api_server|launch_server|tritonserver", text):
        say("target-never-ends", text, name=program)
    if re.search(r"\bjupyter\b|ipykernel", text):
        say("notebook", text)
    first = command.target[0] if command.target else ""
    unread = next((w for w in command.target if re.match(r"\$\{?[A-Za-z_]", w)), None)
    if unread is not None:
        say("variable-in-command", unread, name=unread)
    if command.tool == "ncu" and _METRIC.fullmatch(first) and command.value("metrics"):
        say("metrics-with-blank", first, metric=first)
    if not command.tool.startswith("nsys"):
        for word in command.target[1:]:
            if word.startswith("--") and word[2:].partition("=")[0] in _NCU_ALONE:
                say("option-behind-target", word, name=word.partition("=")[0], program=first)
    if first.endswith((".sh", ".bash")):
        say("target-is-shell-script", first, name=first)
    everything = " ".join(command.target)
    ranks = re.search(
        r"(?:--nproc[_-]per[_-]node|--tensor-parallel-size|--num[_-](?:processes|gpus)|-tp|-np|-n)"
        r"[ =](\d+)",
        everything,
    )
    if ranks and int(ranks.group(1)) > 1:
        say("target-many-ranks", ranks.group(0), name=program, ranks=ranks.group(1))
    if not command.target and not _needs_no_target(command):
        say("no-command-given", command.tool, why="no target program follows the options")


def _needs_no_target(command: Command) -> bool:
    alone = ("import", "help", "version", "list-", "query-metrics")
    given = [name for name, _ in command.options]
    return any(name.startswith(alone) for name in given) or command.value("mode") == "attach"


def _state_output(command: Command, say: Say) -> None:
    path = command.value("export")
    if not path:
        return
    if command.launcher and "%" not in path:
        launcher, ranks = command.launcher
        say("output-of-all-ranks", f"-o {path}", path=path, launcher=launcher, ranks=str(ranks))
    folder = path.rpartition("/")[0]
    if folder:
        say("output-folder", f"-o {path}", path=folder)
    if "." not in path.rsplit("/", 1)[-1]:
        say("output-without-extension", f"-o {path}", path=path)
