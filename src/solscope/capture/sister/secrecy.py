"""Which plain values look like secrets, so that they are never copied and never shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_?KEY(?:_ID)?|"
    r"PRIVATE_?KEY|BEARER)(?:_|$)",
    re.IGNORECASE,
)
# A name that says where a secret lies, or how long it is, holds none.
_ABOUT = re.compile(r"_(?:PATH|FILE|DIR|NAME|URL|TTL|COUNT|LIMIT|LENGTH)$", re.IGNORECASE)
_VALUE = re.compile(
    r"^(?:sk-[A-Za-z0-9]|hf_[A-Za-z0-9]{8}|gh[pousr]_[A-Za-z0-9]{8}|AKIA[0-9A-Z]{8}|nvapi-|"
    r"glpat-|xox[bp]-|ey[JK][A-Za-z0-9_-]{10}|Bearer\s)|://[^/\s:@]+:[^/\s@]+@"
)


def is_literal(value: str) -> bool:
    """Whether a value is itself, not the name of a variable that the kubelet or a shell expands."""
    return not value.startswith("$")


def masked(words: Iterable[str]) -> str:
    """Words for people to read, with ``***`` for what looks like a secret.

    >>> masked(["vllm", "serve", "--api-key", "sk-abc", "--hf-token=hf_x"])
    'vllm serve --api-key *** --hf-token=***'
    """
    shown: list[str] = []
    flag = ""
    for word in words:
        name, equals, value = word.partition("=")
        if flag and not word.startswith("--") and looks_secret(_variable(flag), word):
            shown.append("***")
        elif equals and looks_secret(_variable(name), value):
            shown.append(f"{name}=***")
        elif _VALUE.search(word):
            shown.append("***")
        else:
            shown.append(word)
        flag = word if word.startswith("--") else ""
    return " ".join(shown)


def secret_options(words: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """The indices of every option whose value is a plain secret, the value's included."""
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word.partition("=")
        if equals:
            if is_literal(value) and looks_secret(_variable(name), value):
                yield (index,)
            continue
        following = words[index + 1] if index + 1 < len(words) else ""
        if following.startswith("--") or not is_literal(following):
            continue
        if looks_secret(_variable(name), following):
            yield (index, index + 1)


def secret_assignments(words: Iterable[str]) -> Iterator[str]:
    """The names of variables that a script sets to a plain secret."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier() and is_literal(value) and looks_secret(name, value):
            yield name


def places(node: Any, path: str = "") -> Iterator[str]:
    """Where in an object a text stands that looks like a secret whatever its name."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from places(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from places(value, f"{path}[{index}]")
    elif isinstance(node, str):
        parts = (part.strip("'\"") for word in node.split() for part in (word, *word.split("=")))
        if any(_VALUE.search(part) for part in parts):
            yield path


def _variable(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def looks_secret(name: str, value: str) -> bool:
    """Whether a plain environment value is, or may be, a secret. An empty value is none.

    >>> looks_secret("HF_TOKEN", "x"), looks_secret("TOKENIZERS_PARALLELISM", "true")
    (True, False)
    """
    if not value:
        return False
    named = bool(_NAME.search(name)) and not _ABOUT.search(name)
    return named or bool(_VALUE.search(value))
