"""A server's words to options: every way of writing one, later ones winning."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from solscope.capture.engine.options import OptionTable
from solscope.cluster.secrecy import MASK, is_secret, masked
from solscope.model.cluster import EngineArgument

_NUMBER = re.compile(r"-\d+(?:\.\d+)?")
# vLLM's -O3 and -O.mode=3; -cc.mode=3 and -tp2 do not exist in that glued form.
_LEVEL = re.compile(r"-O(?P<level>\d)")
_NO_TABLE = OptionTable(valued=frozenset(), switches=frozenset())


@dataclass(slots=True)
class Options:
    """What was read. ``values`` keeps, by full name, the last value (``None`` for a switch);
    ``nested`` the parts of ``--name.key value``; ``positional`` the words that belong to no
    option."""

    values: dict[str, str | None] = field(default_factory=dict)
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)
    arguments: list[EngineArgument] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self, *names: str) -> str | None:
        """The value of the first name that has one."""
        return next((v for n in names if (v := self.values.get(n)) is not None), None)

    def has(self, name: str) -> bool:
        """Whether an option was given, with or without a value."""
        return name in self.values

    def structure(self, name: str) -> dict[str, Any]:
        """A JSON option with its dotted parts laid over it; empty where it does not parse."""
        try:
            base = json.loads(self.values.get(name) or "{}")
        except ValueError:
            self.notes.append(f"--{name} is not valid JSON as it stands")
            base = {}
        return {**(base if isinstance(base, dict) else {}), **self.nested.get(name, {})}


def parse(words: Sequence[str], table: OptionTable | None) -> Options:
    """Read ``--a b``, ``--a=b``, ``-tp 2``, ``--a.key b``, switches and abbreviations."""
    table = table or _NO_TABLE
    options = Options()
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-") or word in ("-", "--") or _NUMBER.fullmatch(word):
            if word not in ("-", "--"):
                options.positional.append(word)
            continue
        position = _option(words, position, word, table, options)
    return options


def _option(
    words: Sequence[str], position: int, word: str, table: OptionTable, options: Options
) -> int:
    level = _LEVEL.fullmatch(word)
    if level:
        _keep(options, "optimization-level", level["level"], "-O", table)
        return position
    written, equals, value = word.lstrip("-").partition("=")
    base, _, key = written.partition(".")
    name, complaint = table.full_name(base)
    if complaint:
        options.notes.append(complaint)
    if equals:
        values: list[str] = [value]
    else:
        values = _values(words, position, name, table)
        position += len(values)
    if key:
        options.nested.setdefault(name, {})
        _nest(options.nested[name], key.rstrip("+"), values[0] if values else "true")
        _note_argument(options, f"{name}.{key}", " ".join(values) or None, base)
        return position
    if name in table.several and values:
        options.several[name] = tuple(values)
    _keep(options, name, " ".join(values) if values else None, base, table)
    return position


def _values(words: Sequence[str], position: int, name: str, table: OptionTable) -> list[str]:
    """The words from ``position`` on that are the option's values."""
    switch = name in table.switches or (name.startswith("no-") and name[3:] in table.switches)
    following = words[position : position + 1]
    if switch:
        # argparse's later boolean options also take an explicit word.
        return list(following) if following and following[0].lower() in ("true", "false") else []
    taken: list[str] = []
    limit = None if name in table.several else 1
    for word in words[position:]:
        if (word.startswith("-") and not _NUMBER.fullmatch(word)) or len(taken) == limit:
            break
        taken.append(word)
    return taken


def _keep(options: Options, name: str, value: str | None, written: str, table: OptionTable) -> None:
    if name.startswith("no-") and name not in table.names:
        options.values[name[3:]] = "false"
    else:
        options.values[name] = value
    _note_argument(options, name, value, written)


def _note_argument(options: Options, name: str, value: str | None, written: str) -> None:
    shown = value
    if value is not None:
        shown = MASK if is_secret(name, value) else masked(value)
    options.arguments.append(EngineArgument(name=name, value=shown, written=written))


def _nest(target: dict[str, Any], key: str, value: str) -> None:
    *path, last = key.split(".")
    for part in path:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        target = inner
    try:
        target[last] = json.loads(value)
    except ValueError:
        target[last] = value
