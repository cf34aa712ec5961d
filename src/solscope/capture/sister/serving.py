"""The server's own options: leave every group, ask for less memory, open the window on request.

Keeps every option that decides what the kernels do; what is taken away only concerned others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from solscope.capture.sister import secrecy
from solscope.capture.sister.command import Engine, ServerCommand
from solscope.capture.sister.options import (
    DEFAULT_PORTS,
    EXECUTOR,
    GROUP,
    HOST,
    JOINING,
    MEMORY,
    PORT,
    PROFILER,
    SEVERAL,
    TRANSPORT,
    EngineOption,
    spelled,
)
from solscope.model.sister import Action, Change

# What says that there is one node, or that this is the first.
_OF_ONE = frozenset({("--nnodes", "1"), ("--node-rank", "0"), ("--data-parallel-start-rank", "0")})
COMMAND_PATH = "spec.containers[{}].command"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of an option: the indices of all its words, and its value if it is one word."""

    indices: tuple[int, ...]
    value: str | None
    dotted: bool = False


def uses(command: ServerCommand, option: EngineOption) -> Iterator[Use]:
    """Every use of ``option``: spelled out, shortened, with underscores, ``=`` or ``.key``."""
    if command.engine is not option.engine:
        return
    words = command.words
    for index, word in enumerate(words):
        if not word.startswith("-"):
            continue
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            flag = flag.replace("_", "-")
        stem, dot, _key = flag.partition(".")
        if not (stem in (option.name, option.letters) or (not dot and _shortened(stem, option))):
            continue
        if equals:
            yield Use(indices=(index,), value=None if dot else value, dotted=bool(dot))
            continue
        taken, most = [index], _values(command, option)
        while len(taken) <= most and taken[-1] + 1 < len(words):
            if words[taken[-1] + 1].startswith("--"):
                break
            taken.append(taken[-1] + 1)
        value = words[taken[1]] if len(taken) > 1 else ""
        yield Use(indices=tuple(taken), value=None if dot else value, dotted=bool(dot))


def _values(command: ServerCommand, option: EngineOption) -> int:
    """How many values may follow; one where the next word may be the model (older vLLM)."""
    if option.values != SEVERAL or "serve" not in command.words:
        return option.values
    at = command.words.index("serve") + 1
    has_model = at < len(command.words) and not command.words[at].startswith("-")
    return SEVERAL if has_model else 1


def _shortened(stem: str, option: EngineOption) -> bool:
    return stem.startswith(option.shortest) and option.name.startswith(stem)


def group_evidence(command: ServerCommand) -> Iterator[str]:
    """The words that show that the server is one rank of a multi-node group, or runs on Ray."""
    for option in GROUP:
        for use in uses(command, option):
            if (option.name, use.value) in _OF_ONE:
                continue
            yield " ".join(command.words[index] for index in use.indices)
    for use in uses(command, EXECUTOR):
        if use.value == "ray":
            yield " ".join(command.words[index] for index in use.indices)


def leave_groups(command: ServerCommand, container: str) -> tuple[ServerCommand, list[Change]]:
    """The command without options that join peers, traces or controllers."""
    changes: list[Change] = []
    for option in JOINING:
        for use in uses(command, option):
            command = command.drop(use.indices)
            changes.append(_change(container, Action.REMOVED, option.name, option.why))
    return command, changes


def listen_on_loopback(
    command: ServerCommand, container: str, declared: Sequence[int]
) -> tuple[ServerCommand, list[Change]]:
    """The command of a server that listens on the pod's loopback alone, by plain HTTP.

    ``declared`` are the ports that its container declared. Both options are written last: the
    last use of an option counts, and one may come before it out of a variable.
    """
    default = DEFAULT_PORTS.get(command.engine)
    if default is None:
        return command, []
    changes: list[Change] = []
    for option in TRANSPORT:
        for use in uses(command, option):
            command = command.drop(use.indices)
            changes.append(_change(container, Action.REMOVED, option.name, option.why))
    hosts = [use for option in HOST for use in uses(command, option)]
    ports = [use for option in PORT for use in uses(command, option)]
    said = ports[-1].value or "" if ports else ""
    port = int(said) if said.isdigit() else next(iter(declared), default)
    before = hosts[-1].value if hosts else None
    for use in (*hosts, *ports):
        command = command.drop(use.indices)
    command = command.add(HOST[0].name, LOOPBACK, PORT[0].name, str(port))
    if before != LOOPBACK:
        what = f"--host {before or 'of the engine'} -> {LOOPBACK}"
        changes.append(_change(container, Action.CHANGED, what, HOST[0].why))
    if said != str(port):
        what = f"--port {said or 'of the engine'} -> {port}"
        changes.append(_change(container, Action.CHANGED, what, PORT[0].why))
    return command, changes


def drop_secrets(
    command: ServerCommand, container: str
) -> tuple[ServerCommand, list[Change], list[str]]:
    """The command without options whose value is a plain secret, and their names."""
    changes, names = [], []
    for indices in secrecy.secret_options(command.words):
        name = command.words[indices[0]].partition("=")[0]
        if indices[0] in command.dropped:
            continue
        command = command.drop(indices)
        names.append(name)
        why = "secrets are referenced, never copied"
        changes.append(_change(container, Action.REMOVED, name, why))
    return command, changes, names


def drop_references(
    command: ServerCommand, container: str
) -> tuple[ServerCommand, list[Change], dict[str, tuple[str, ...]]]:
    """The command without options for secrets that are referred to: the server is started with
    their values, and ncu keeps its command line in the report.

    The third is what each option's value referred to, by the option's name.
    """
    changes: list[Change] = []
    found: dict[str, tuple[str, ...]] = {}
    for indices in secrecy.referring_options(command.words):
        name = command.words[indices[0]].partition("=")[0]
        if indices[0] in command.dropped:
            continue
        found[name] = secrecy.names_in(command.words[indices[-1]])
        command = command.drop(indices)
        why = "ncu keeps the command line in its report, the secret's value included"
        changes.append(_change(container, Action.REMOVED, name, why))
    return command, changes, found


def lower_memory(
    command: ServerCommand, container: str, planned: float | None
) -> tuple[ServerCommand, list[Change]]:
    """The command with at most the planned share of GPU memory."""
    option = next((item for item in MEMORY if item.engine is command.engine), None)
    if planned is None or option is None:
        return command, []
    found = list(uses(command, option))
    if not found:
        added = command.add(spelled(option), f"{planned:g}")
        what = f"{spelled(option)} {planned:g} (the engine's default before)"
        return added, [_change(container, Action.ADDED, what, option.why)]
    # The last use of an option is the one that counts.
    use = found[-1]
    current = _fraction(use.value)
    if current is not None and current <= planned:
        return command, []
    before, index = use.value or "?", use.indices[-1]
    if len(use.indices) == 1:
        flag = command.words[index].partition("=")[0]
        command = command.put(index, f"{flag}={planned:g}")
    else:
        command = command.put(index, f"{planned:g}")
    what = f"{spelled(option)} {before} -> {planned:g}"
    return command, [_change(container, Action.CHANGED, what, option.why)]


def _fraction(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def open_window_on_request(
    command: ServerCommand, container: str, version: tuple[int, ...] | None
) -> tuple[ServerCommand, list[Change], dict[str, str]]:
    """Make ``/start_profile`` call ``cudaProfilerStart``: options, and variables to set.

    SGLang has the endpoint always; vLLM only with a profiler configured, and that one must be
    ``cuda``: by a variable in 0.12, by an option since 0.13. An unknown version counts as new.
    """
    if command.engine is not Engine.VLLM:
        return command, [], {}
    if version is not None and version[:2] < (0, 13):
        return command, [], {"VLLM_TORCH_CUDA_PROFILE": "1"}
    found = list(uses(command, PROFILER))
    changes = []
    for use in found:
        command = command.drop(use.indices)
        what = "--profiler-config of the target"
        changes.append(
            _change(container, Action.REMOVED, what, "only the CUDA profiler opens ncu's window")
        )
    command = command.add(PROFILER.name, '{"profiler":"cuda"}')
    what = '--profiler-config {"profiler":"cuda"}'
    changes.append(_change(container, Action.ADDED, what, PROFILER.why))
    return command, changes, {}


def _change(container: str, action: Action, what: str, why: str) -> Change:
    return Change(path=COMMAND_PATH.format(container), action=action, what=what, why=why)
