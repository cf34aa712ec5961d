"""Where plain secrets stand in a command line, a script or an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from solscope.cluster.secrecy import is_secret, masked

_COMMAND = re.compile(r"\.(?:command|args)\[\d+\]$")

__all__ = ["is_secret", "places", "secret_assignments", "secret_options", "shown"]


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
