"""Where in a container's command the server starts: every form that was seen in the wild."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from solscope.capture.engine import image, shell
from solscope.model.cluster import ContainerSnapshot

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?")
_MODULES: tuple[tuple[str, str], ...] = (
    ("vllm.entrypoints", "vllm"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("dynamo.vllm", "dynamo-vllm"),
    ("dynamo.sglang", "dynamo-sglang"),
    ("dynamo.trtllm", "dynamo-trtllm"),
    ("tensorrt_llm", "tensorrt-llm"),
)
_RAY = re.compile(r"\bray\s+start\b|--ray[-_](?:cluster[-_]size|address)")
_PROFILERS = frozenset({"ncu", "nsys", "nv-nsight-cu-cli", "nvprof", "rocprof", "rocprofv3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """The server's own words. ``arguments`` follow the entry; ``entry`` includes wrappers.

    ``engine`` is ``None`` where no server was recognised; ``form`` is how the words were found.
    """

    form: str
    engine: str | None = None
    entry: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    others: tuple[str, ...] = field(default=())


def find(container: ContainerSnapshot) -> ServerCommand:
    """The server command of a container, as its command, args and env give it."""
    env = {var.name: var.value for var in container.env if var.value is not None}
    unresolved: list[str] = []
    words = [
        shell.expand_kubelet(shell.without_templates(word, unresolved), env, unresolved)
        for word in (*container.command, *container.args)
    ]
    if not container.command:
        return _with_entrypoint(container, words, unresolved)
    return in_words(words, env, unresolved)


def in_words(
    words: Sequence[str], env: Mapping[str, str], unresolved: Sequence[str] = ()
) -> ServerCommand:
    """The server command in an argv, looked for in a shell's script where there is one."""
    script = _script(words)
    if script is None:
        engine, start = _server(words)
        return ServerCommand(
            form="list",
            engine=engine,
            entry=tuple(words[:start]),
            arguments=tuple(words[start:]),
            unresolved=tuple(unresolved),
            notes=tuple(_wrappers(words[:start])),
        )
    text, positional = script
    reader = shell.Script(variables=dict(env), positional=positional)
    commands = reader.commands(text)
    found = [(command, *_server(command)) for command in commands]
    served = [item for item in found if item[1] is not None]
    others = tuple(" ".join(command) for command, engine, _ in found if engine is None)
    missing = tuple(dict.fromkeys((*unresolved, *reader.unresolved)))
    if not served:
        return ServerCommand(form="shell", unresolved=missing, others=others)
    command, engine, start = served[-1]
    notes = [*_wrappers(command[:start])]
    if any(_RAY.search(other) for other in others):
        notes.append("the script starts or joins a Ray cluster")
    if len(served) > 1:
        notes.append(f"the script starts {len(served)} servers; the last one is read")
    return ServerCommand(
        form="shell",
        engine=engine,
        entry=tuple(command[:start]),
        arguments=tuple(command[start:]),
        unresolved=missing,
        notes=tuple(notes),
        others=others,
    )


def _with_entrypoint(
    container: ContainerSnapshot, words: Sequence[str], unresolved: Sequence[str]
) -> ServerCommand:
    """No command: the image's entrypoint runs, with the args, if any."""
    engine, start_command = image.engine(container.image)
    named, start = _server(words)
    if named is not None:
        return ServerCommand(
            form="entrypoint",
            engine=named,
            entry=tuple(words[:start]),
            arguments=tuple(words[start:]),
            unresolved=tuple(unresolved),
        )
    notes: list[str] = []
    arguments = list(words)
    if engine == "vllm" and words[:1] == ["serve"]:
        arguments = arguments[1:]
        notes.append(
            "args begin with `serve`: right only if the image's entrypoint is `vllm` alone; "
            "vllm/vllm-openai's is `vllm serve`, or the API server module in 2025 and before"
        )
    known = start_command is not None
    return ServerCommand(
        form="entrypoint",
        engine=engine if known or words else None,
        entry=("<entrypoint>",),
        arguments=tuple(arguments),
        unresolved=tuple(unresolved),
        notes=tuple(notes),
    )


def _script(words: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """A shell's script and its positional words, if the argv runs one."""
    if len(words) == 1 and re.search(r"[ \t\n]", words[0].strip()):
        # One word with blanks is no program: an operator (KubeRay) hands it to a shell.
        inner = shell.Script(variables={}).commands(words[0])
        nested = _script(inner[0]) if len(inner) == 1 and len(inner[0]) > 1 else None
        return nested or (words[0], ())
    for at, word in enumerate(words):
        if word.rpartition("/")[2] not in _SHELLS:
            continue
        after = at + 1
        while after < len(words) and re.fullmatch(r"[-+][A-Za-z]+", words[after]):
            takes_script = words[after].startswith("-") and "c" in words[after][1:]
            after += 1
            if takes_script:
                after += words[after : after + 1] == ["--"]
                if after < len(words):
                    return words[after], tuple(words[after + 1 :])
        return None
    return None


def _server(words: Sequence[str]) -> tuple[str | None, int]:
    """The engine that the words start, and where its arguments begin."""
    for at, word in enumerate(words):
        base = word.rpartition("/")[2]
        following = words[at + 1 : at + 2]
        if base in ("vllm", "sglang") and following == ["serve"]:
            return base, at + 2
        if base == "trtllm-serve":
            return "tensorrt-llm", at + 1 + (following == ["serve"])
        if base == "text-generation-launcher":
            return "tgi", at + 1
        if base == "tritonserver":
            return "triton", at + 1
        if _PYTHON.fullmatch(base):
            found = _python(words, at + 1)
            if found[0] is not None:
                return found
    return None, len(words)


def _python(words: Sequence[str], at: int) -> tuple[str | None, int]:
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 2 if words[at] in ("-W", "-X") else 1
    if at >= len(words):
        return None, at
    if words[at] != "-m":
        name = words[at].rpartition("/")[2]
        known = {"vllm": "vllm", "sglang": "sglang", "trtllm-serve": "tensorrt-llm"}
        if name in known:
            return known[name], at + 1 + (words[at + 1 : at + 2] == ["serve"])
        return ("vllm", at + 1) if words[at].endswith("openai/api_server.py") else (None, at)
    module = words[at + 1] if at + 1 < len(words) else ""
    for prefix, engine in _MODULES:
        if module == prefix or module.startswith(prefix + "."):
            return engine, at + 2 + (words[at + 2 : at + 3] == ["serve"])
    return None, at


def _wrappers(entry: Sequence[str]) -> list[str]:
    """What stands before the server and matters for a profiler."""
    names = [word.rpartition("/")[2] for word in entry if not word.startswith("-")]
    notes = []
    for name in names[:-1]:
        if name in _PROFILERS:
            notes.append(f"the server is already started under {name}")
        elif name in ("mpirun", "mpiexec", "torchrun", "ray"):
            shown = "Ray" if name == "ray" else name
            notes.append(f"the server is started by {shown}")
    return notes
