"""Rows of a text table whose columns were lost: spaces run together, dashes or tabs in their place.

What a row says is then told by its words, where they allow one reading alone: a label that ncu is
known to print in this section, the unit, the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from solscope.errors import UnknownUnit
from solscope.model.units import printed_unit
from solscope.reports.printed.labels import COMMAND_LINE_SECTION, meanings

_GAP = re.compile(r"[ \t]+")
_METRIC = re.compile(r"[a-z0-9]+__[\w.]+")


def cells(section: str, line: str, values: int) -> tuple[str, ...] | None:
    """Label, unit and the values of a row, ``None`` where its words do not tell."""
    words = _GAP.split(line.strip())
    before, found = words[:-values], words[-values:]
    if len(before) > 1 and is_unit(before[-1]) and _is_label(section, before[:-1]):
        return (" ".join(before[:-1]), before[-1], *found)
    if before and _is_label(section, before):
        return (" ".join(before), "", *found)
    return None


def whole_name(name: str, before: Sequence[str]) -> str:
    """The name of a kernel whose first parts stand in the lines before, where a terminal has
    broken it: lines of one width, of which the first is indented by two as ncu does."""
    parts: list[str] = []
    for line in reversed(before):
        parts.insert(0, line)
        if len({len(part) for part in parts}) > 1:
            break
        if line.startswith("  "):
            return ("".join(parts) + name).strip()
    return name


def _is_label(section: str, words: Sequence[str]) -> bool:
    label = " ".join(words)
    if meanings(section, "", label):
        return True
    return section == COMMAND_LINE_SECTION and _METRIC.fullmatch(label) is not None


def is_unit(word: str) -> bool:
    """Whether ncu prints this word as a unit."""
    try:
        return bool(printed_unit(word).base)
    except UnknownUnit:
        return False
