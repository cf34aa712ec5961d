"""Secrets out of what is recorded: by option and variable name, by shape, and by value.

What counts as a secret's name or shape is handed in; what is added here is memory: a value that
was masked once in a bundle's commands is masked wherever it turns up in their output.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MASK = "<redacted>"
SHORTEST_LEARNT = 6
"""Shorter values are not looked for in output: they would hit words of everyday text."""

_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9_.-]*\Z")
_TAKES_SEVERAL = re.compile(r"--api[-_]keys?\Z")
_PLACE = re.compile(r"\.{0,2}/|[a-z][a-z0-9+.-]*://")
_ASSIGNMENT = re.compile(r"(?P<name>(?:--?)?[A-Za-z_][A-Za-z0-9_.-]*)=(?P<value>.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks secrets. ``mask_text`` masks by shape; ``is_secret_name`` judges names;
    ``known`` holds values to mask wherever they stand."""

    mask_text: Callable[[str], str]
    is_secret_name: Callable[[str], bool]
    known: set[str] = field(default_factory=set)

    def learn(self, value: str) -> None:
        """Mask this value from now on."""
        if len(value) >= SHORTEST_LEARNT and not value.startswith("$"):
            self.known.add(value)

    def argv(self, arguments: Sequence[str]) -> list[str]:
        """A command line with its secrets masked, argument by argument.

        A script among the arguments is read word by word, so that what it names is known.
        """
        shown: list[str] = []
        takes_secret = takes_several = False
        for argument in arguments:
            if " " in argument or "\n" in argument:
                with contextlib.suppress(ValueError):
                    self.argv([word for word in shlex.split(argument) if word != argument])
            found = _ASSIGNMENT.match(argument)
            if takes_several and (argument.startswith("-") or _PLACE.match(argument)):
                takes_several = False
            if (takes_secret or takes_several) and not argument.startswith("-"):
                self.learn(argument)
                shown.append(MASK)
            elif found and self.is_secret_name(found["name"].lstrip("-")) and found["value"]:
                self.learn(found["value"])
                shown.append(f"{found['name']}={MASK}")
            else:
                shown.append(self.text(argument))
            takes_secret = bool(_OPTION.match(argument)) and self.is_secret_name(
                argument.lstrip("-")
            )
            takes_several = takes_several or bool(takes_secret and _TAKES_SEVERAL.match(argument))
        return shown

    def text(self, text: str) -> str:
        """Text with its secrets masked: known values first, longest first, then shapes."""
        for value in sorted(self.known, key=len, reverse=True):
            text = text.replace(value, MASK)
        return self.mask_text(text)

    def document(self, node: Any) -> Any:
        """A JSON document with the secrets in its texts masked, its structure as it was."""
        if isinstance(node, str):
            return self.text(node)
        if isinstance(node, Mapping):
            return {
                key: MASK
                if isinstance(value, str) and value and self.is_secret_name(str(key))
                else self.document(value)
                for key, value in node.items()
            }
        return [self.document(item) for item in node] if isinstance(node, list | tuple) else node

    def output(self, data: bytes) -> bytes:
        """Bytes with their secrets masked; bytes that are no UTF-8 pass through unchanged."""
        text = data.decode("utf-8", "surrogateescape")
        return self.text(text).encode("utf-8", "surrogateescape")
