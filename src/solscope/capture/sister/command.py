"""A server's command line taken apart, changed at a few words, and put under the profiler.

Two forms exist in pods: a list of words, and a shell with one script in which the server is one
command among others. Both become :class:`ServerCommand`, whose words can be dropped, replaced
and added to without touching anything else of the text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from solscope.capture.sister import shell


class Engine(StrEnum):
    """The serving engine, as far as its options must be known here."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    DYNAMO = "dynamo"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """Where the server stands in a container's command, and what shall change.

    ``words`` are the words of the server's own command from its program on. For a script,
    ``spans`` are their places in ``script`` and ``before`` the words that precede them there
    (``exec``, variable assignments). ``added`` follows the last word.
    """

    engine: Engine
    words: tuple[str, ...]
    script: str | None = None
    spans: tuple[tuple[int, int], ...] = ()
    shell_words: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    dropped: frozenset[int] = frozenset()
    replaced: Mapping[int, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()

    def drop(self, indices: Sequence[int]) -> ServerCommand:
        """The same command without the words at ``indices``."""
        return replace(self, dropped=self.dropped | frozenset(indices))

    def put(self, index: int, word: str) -> ServerCommand:
        """The same command with another word at ``index``."""
        return replace(self, replaced={**self.replaced, index: word})

    def add(self, *words: str) -> ServerCommand:
        """The same command with more words at its end."""
        return replace(self, added=(*self.added, *words))

    def edited(self) -> tuple[str, ...]:
        """The words of the server's command after all changes."""
        kept = (
            self.replaced.get(index, word)
            for index, word in enumerate(self.words)
            if index not in self.dropped
        )
        return (*kept, *self.added)

    def under(self, prefix: Sequence[str]) -> tuple[list[str], list[str]]:
        """Kubernetes ``command`` and ``args`` that start the server behind ``prefix``.

        ``prefix`` is taken literally: what the kubelet would expand in it is escaped.
        """
        literal = [word.replace("$(", "$$(") for word in prefix]
        if self.script is None:
            own = list(self.edited())
            return (literal, own) if literal else (own, [])
        return list(self.shell_words), [self._script_under(literal), *self.rest]

    def _script_under(self, prefix: Sequence[str]) -> str:
        assert self.script is not None
        text: list[str] = []
        position = 0
        for index, (begin, end) in enumerate(self.spans):
            if index in self.dropped:
                # The blanks and line continuation before a dropped word go with it.
                text.append(self.script[position : self.spans[index - 1][1]])
                position = end
                continue
            text.append(self.script[position:begin])
            if index == 0 and prefix:
                text.append(shlex.join(prefix) + " ")
            changed = self.replaced.get(index)
            text.append(self.script[begin:end] if changed is None else shlex.quote(changed))
            position = end
        text.extend(" " + shlex.quote(word) for word in self.added)
        text.append(self.script[position:])
        return "".join(text)


def assignments(command: ServerCommand) -> dict[str, str]:
    """The variables that the start script sets anywhere, with their unquoted values."""
    found: dict[str, str] = {}
    for simple in shell.commands(command.script or ""):
        for word in simple.words:
            name, equals, value = word.text.partition("=")
            if equals and name.isidentifier():
                found[name] = value
    return found


# -- finding the server ----------------------------------------------------------------------

_SHELLS = re.compile(r"(?:.*/)?(?:ba|da|z|k|a)?sh$")
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*$")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_STARTERS = frozenset({"exec", "nohup", "command", "time", "env", "setsid"})

_MODULES: Mapping[str, Engine] = {
    "vllm": Engine.VLLM,
    "sglang": Engine.SGLANG,
    "tensorrt_llm": Engine.TENSORRT_LLM,
    "dynamo": Engine.DYNAMO,
}
_PROGRAMS: Mapping[str, Engine] = {
    "vllm": Engine.VLLM,
    "sglang": Engine.SGLANG,
    "trtllm-serve": Engine.TENSORRT_LLM,
    "trtllm-llmapi-launch": Engine.TENSORRT_LLM,
    "dynamo": Engine.DYNAMO,
}


def engine_of(words: Sequence[str]) -> Engine:
    """The engine that a command starts.

    >>> engine_of(["python3", "-m", "sglang.launch_server"]).value
    'sglang'
    """
    if not words:
        return Engine.UNKNOWN
    program = words[0].rsplit("/", 1)[-1]
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    if not _PYTHON.match(words[0]):
        return Engine.UNKNOWN
    for index, word in enumerate(words[1:], start=1):
        if word == "-m" and index + 1 < len(words):
            return _MODULES.get(words[index + 1].split(".", 1)[0], Engine.UNKNOWN)
        if not word.startswith("-"):
            # `python3 /usr/local/bin/vllm serve ...`, or a script of the image.
            return _PROGRAMS.get(word.rsplit("/", 1)[-1], Engine.UNKNOWN)
    return Engine.UNKNOWN


def locate(command: Sequence[str], args: Sequence[str]) -> ServerCommand | None:
    """The server in a container's ``command`` and ``args``; None if a script hides it."""
    words = [*command, *args]
    script_at = _script_index(words)
    if script_at is None:
        return ServerCommand(engine=engine_of(words), words=tuple(words))
    script = words[script_at]
    for simple in shell.commands(script):
        start = _program_index([word.text for word in simple.words])
        own = simple.words[start:]
        engine = engine_of([word.text for word in own])
        if engine is Engine.UNKNOWN:
            continue
        return ServerCommand(
            engine=engine,
            words=tuple(word.text for word in own),
            script=script,
            spans=tuple((word.begin, word.end) for word in own),
            shell_words=tuple(words[:script_at]),
            rest=tuple(words[script_at + 1 :]),
            before=tuple(word.text for word in simple.words[:start]),
        )
    return None


def _script_index(words: Sequence[str]) -> int | None:
    """Where the script stands in ``sh -c SCRIPT``; None for anything else."""
    if not words or not _SHELLS.match(words[0]):
        return None
    for index, word in enumerate(words[1:], start=1):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and word.endswith("c"):
            rest = index + 1
            # `bash -lc -- SCRIPT`
            if rest < len(words) and words[rest] == "--":
                rest += 1
            return rest if rest < len(words) else None
    return None


def _program_index(words: Sequence[str]) -> int:
    index = 0
    while index < len(words) and (
        words[index] in _STARTERS
        or _ASSIGNMENT.match(words[index])
        or (index > 0 and words[index - 1] == "exec" and words[index].startswith("-"))
    ):
        index += 1
    return index
