"""One key put into a JSON text that other tools own; every other byte stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator

from solscope.errors import CaptureError

KEY = "kernel_internals"
FILE = "inference_perfbench_v1.json"
_BLANK = " \t\r\n"


def put(text: str, value: object, *, where: str) -> str:
    """The text with ``kernel_internals`` set to ``value`` at its top level.

    Replaces the value in place, or adds the key after the last one, indented as the others.
    Raises CaptureError where the text is no JSON object.

    >>> put('{"a": 1.50}', {"b": 2}, where="x")
    '{"a": 1.50, "kernel_internals": {"b": 2}}'
    """
    try:
        members = list(_members(text))
    except ValueError as error:
        raise CaptureError(
            f"not a JSON object: {error}", where=where, hint="it is left as it was"
        ) from error
    separator, indent = _layout(text, members)
    written = json.dumps(value, indent=indent)
    if "\n" in separator:
        # What is nested goes as deep as its key.
        written = written.replace("\n", separator)
    ours = [(begin, end) for key, _, begin, end in members if key == KEY]
    if ours:
        # Twice in one object, every reader believes another one: all of them say the same then.
        for begin, end in reversed(ours):
            text = text[:begin] + written + text[end:]
        return text
    if not members:
        at = text.index("{") + 1
        return text[:at] + f'"{KEY}": {written}' + text[at:]
    last = members[-1][3]
    return f'{text[:last]},{separator}"{KEY}": {written}{text[last:]}'


def _layout(text: str, members: list[tuple[str, int, int, int]]) -> tuple[str, str | int | None]:
    """What stands before each key, and the indentation that goes with it."""
    if not members:
        return " ", None
    begin = members[-1][1]
    at = begin
    while text[at - 1] in _BLANK:
        at -= 1
    space = text[at:begin]
    if "\n" not in space:
        return (space or " "), None
    before, _, depth = space.rpartition("\n")
    line_end = "\r\n" if before.endswith("\r") else "\n"
    return line_end + depth, depth if depth else None


def _members(text: str) -> Iterator[tuple[str, int, int, int]]:
    """(key, where it begins, where its value begins, where that ends) of the top level.

    Raises ValueError.
    """
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    _expect(text, at, "{")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        begin = at
        _expect(text, at, '"')
        key, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        _expect(text, at, ":")
        value_at = _skip(text, at + 1)
        _, end = decoder.raw_decode(text, value_at)
        yield key, begin, value_at, end
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
            _expect(text, at, '"')
        else:
            _expect(text, at, "}")
    if _skip(text, at + 1) != len(text):
        raise ValueError(f"something follows the object at character {at + 1}")


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANK:
        at += 1
    return at


def _expect(text: str, at: int, sign: str) -> None:
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign!r} expected at character {at}")
