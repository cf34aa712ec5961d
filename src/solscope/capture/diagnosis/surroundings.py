"""What stands around a profiler's command: the shell's own signs, sudo, containers, launchers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from solscope.capture.diagnosis import shell
from solscope.capture.diagnosis.command import Command, real_target
from solscope.capture.diagnosis.options import SECTIONS, SETS
from solscope.capture.diagnosis.scanning import Facts

_SIGNS = frozenset("|<>();&")
_TAKES_PATTERN = frozenset({
    "-k", "--kernel-name", "--kernel-id", "--nvtx-include", "--nvtx-exclude", "--section",
})  # fmt: skip
# Programs that mostly lie in a user's environment rather than on root's own search path.
_OF_AN_ENVIRONMENT = re.compile(
    r"i?python[\d.]*|vllm|sglang|torchrun|accelerate|deepspeed|uv|pytest|trtllm-\w+"
)
_ENGINES = ("docker", "podman", "nerdctl")
_SANDBOXES = ("apptainer", "singularity")
_RUNS_PYTHON = {
    "torchrun": "--no-python",
    "torch.distributed.run": "--no-python",
    "torch.distributed.launch": "--no-python",
    "accelerate": "--no_python",
    "deepspeed": "--no_python",
}
_OTHER_PROFILERS = frozenset({*shell.PROFILERS, "nvprof", "compute-sanitizer", "cuda-gdb"})
_METRIC = re.compile(r"[a-z0-9]+__\w+(\.\w+)*(,.*)?")


def state(command: Command, facts: Facts) -> None:
    """Add the facts of what surrounds a command."""
    if command.broken or not command.tool:
        return
    found = [_launcher(command), _second_profiler(command), _exec(command)]
    if not command.tool.startswith("nsys"):
        found += [
            _shell_sign(command),
            _sudo(command),
            *_container(command),
            _ranks(command),
            _devices(command),
            _behind(command),
        ]
    for one in found:
        if one is not None:
            code, text, fields = one
            facts.add(code, command.where, text, fields)


_Found = tuple[str, str, dict[str, str]] | None


def _shell_sign(command: Command) -> _Found:
    """A sign that the shell takes for itself. A line of a log may have lost its quotes."""
    if re.search(r":\d+$", command.where):
        return None
    before = ""
    for word, sign in _words(command.text):
        if sign and (before in _TAKES_PATTERN or "regex:" in word):
            return "shell-sign-unquoted", word, {"sign": sign, "word": word}
        before = word
    return None


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Each word as it stands, and the first unquoted shell sign inside it (not at its begin)."""
    word, sign, quote, escaped = "", "", "", False
    for letter in f"{text} ":
        if not quote and not escaped and letter.isspace():
            if word:
                yield word, sign
            word, sign = "", ""
            continue
        if not quote and not escaped and letter in _SIGNS and word:
            sign = sign or letter
        if not escaped and letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        escaped = letter == "\\" and not escaped and quote != "'"
        word += letter


def _sudo(command: Command) -> _Found:
    program = command.target[0] if command.target else ""
    keeps = any(word.startswith("PATH=") for word in command.before)
    if "sudo" not in command.before or keeps or not _OF_AN_ENVIRONMENT.fullmatch(program):
        return None
    return "sudo-bare-program", f"sudo … {program}", {"program": program}


def _container(command: Command) -> Iterator[_Found]:
    """What a container that the command starts lacks for counters."""
    before = command.before
    names = [word.rsplit("/", 1)[-1] for word in before]
    engine = next((n for n in names if n in _ENGINES), None)
    if engine and "run" in names[names.index(engine) :]:
        if not _may_read_counters(before):
            yield "container-without-capability", f"{engine} run", {"engine": engine}
        if not re.search(
            r"--gpus|nvidia\.com/gpu|/dev/nvidia|--runtime[= ]nvidia", " ".join(before)
        ):
            yield (
                "container-without-gpu",
                f"{engine} run",
                {"engine": engine, "option": "--gpus all"},
            )
    sandbox = next((n for n in names if n in _SANDBOXES), None)
    if sandbox and not {"--nv", "--nvccli"} & set(before):
        yield "container-without-gpu", sandbox, {"engine": sandbox, "option": "--nv"}


def _may_read_counters(before: Sequence[str]) -> bool:
    text = " ".join(before)
    return (
        re.search(r"--privileged(?!=false)|--cap-add[= ]\S*(?:SYS_ADMIN|ALL)", text, re.I)
        is not None
    )


def _launcher(command: Command) -> _Found:
    """A launcher that takes the profiler for a Python script."""
    for place, word in enumerate(command.before):
        name = word.rsplit("/", 1)[-1]
        option = _RUNS_PYTHON.get(name)
        rest = {w.replace("_", "-") for w in command.before[place:]}
        if option is not None and option.replace("_", "-") not in rest:
            fields = {"launcher": name, "option": option, "tool": command.tool}
            return "launcher-runs-python", f"{name} … {command.tool}", fields
    return None


def _exec(command: Command) -> _Found:
    """`kubectl exec` without the dashes that end its own options."""
    names = [word.rsplit("/", 1)[-1] for word in command.before]
    if not {"kubectl", "oc"} & set(names) or "exec" not in names or "--" in command.before:
        return None
    return "exec-without-dashes", f"exec … {command.tool}", {"tool": command.tool}


def _ranks(command: Command) -> _Found:
    if command.launcher is None:
        return None
    launcher, ranks = command.launcher
    return "ranks-each-profiled", f"{launcher} {ranks}", {"launcher": launcher, "ranks": str(ranks)}


def _second_profiler(command: Command) -> _Found:
    _, real = real_target(command.target)
    name = shell.tool_of(real[0]) if real else ""
    if name not in _OTHER_PROFILERS:
        return None
    return "second-profiler", f"{command.tool} … {name}", {"first": command.tool, "second": name}


def _devices(command: Command) -> _Found:
    """A device number beyond what CUDA_VISIBLE_DEVICES lets the program see."""
    visible = command.environment.get("CUDA_VISIBLE_DEVICES", "")
    asked = re.findall(r"\d+", command.value("devices") or "")
    count = len([part for part in visible.split(",") if part.strip()])
    if not count or not asked or max(map(int, asked)) < count:
        return None
    fields = {"asked": ",".join(asked), "visible": visible, "count": str(count)}
    return "device-beyond-visible", f"--devices {fields['asked']}", fields


def _behind(command: Command) -> _Found:
    """An option with a value of ncu's own, behind the program."""
    for word, after in itertools.pairwise([*command.target[1:], ""]):
        name, sign, own = word.partition("=")
        value = own if sign else after
        is_own = (
            (name == "--set" and value in SETS)
            or (name == "--section" and value in SECTIONS)
            or (name == "--metrics" and _METRIC.fullmatch(value) is not None)
        )
        if is_own:
            fields = {"name": f"{name} {value}", "program": command.target[0]}
            return "option-behind-target", f"{name} {value}", fields
    return None
