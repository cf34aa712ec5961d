"""Where plain secrets stand in a command line, a script or an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from solscope.cluster.secrecy import is_secret, is_secret_name, masked

_NAMES = re.compile(r"\$(?:\((?P<a>\w+)\)|\{(?P<b>\w+)|(?P<c>[A-Za-z_]\w*))")
_COMMAND = re.compile(r"\.(?:command|args)\[\d+\]$")

__all__ = [
    "is_secret",
    "names_in",
    "places",
    "referring_options",
    "secret_assignments",
    "secret_options",
    "shown",
]


def shown(words: Iterable[str]) -> str:
    """Words for people to read, secrets masked.

    >>> shown(["vllm", "serve", "--api-key", "sk-abc"])
    'vllm serve --api-key <redacted>'
    """
    return masked(" ".join(words))


def secret_options(words: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """The indices of every option whose value is a plain secret, the value's included."""
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word.partition("=")
        if equals:
            if is_secret(name.lstrip("-"), value):
                yield (index,)
            continue
        following = words[index + 1] if index + 1 < len(words) else ""
        if not following.startswith("--") and is_secret(name.lstrip("-"), following):
            yield (index, index + 1)


def referring_options(words: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """The indices of every option for a secret whose value is a reference, the value's included.

    >>> list(referring_options(["--hf-token", "$(T)", "--seed", "$(S)", "--api-key=$K"]))
    [(0, 1), (4,)]
    """
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not word.startswith("--") or not is_secret_name(name.lstrip("-")):
            continue
        following = words[index + 1] if index + 1 < len(words) else ""
        if equals and "$" in value:
            yield (index,)
        elif not equals and "$" in following and not following.startswith("--"):
            yield (index, index + 1)


def names_in(word: str) -> tuple[str, ...]:
    """The variables that a word refers to.

    >>> names_in("s3://$(USER_ID):${KEY:-}@host/$path")
    ('USER_ID', 'KEY', 'path')
    """
    return tuple(m["a"] or m["b"] or m["c"] for m in _NAMES.finditer(word))


def secret_assignments(words: Iterable[str]) -> Iterator[str]:
    """The names of variables that a script sets to a plain secret."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier() and is_secret(name, value):
            yield name


def places(node: Any, path: str = "") -> Iterator[str]:
    """Where in an object a text stands that holds a secret.

    A command is read with its options and assignments; any other text by its own look only.
    """
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from places(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from places(value, f"{path}[{index}]")
    elif isinstance(node, str) and (
        is_secret("", node) or (_COMMAND.search(path) and masked(node) != node)
    ):
        yield path
