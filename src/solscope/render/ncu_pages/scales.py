"""Units as ncu prints them: base or scaled, in the spelling of its age."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from solscope.model.report import Report

_BYTE_PREFIXES = ("", "K", "M", "G", "T")
_OLD_TIMES = ("nsecond", "usecond", "msecond", "second")
_NEW_TIMES = ("ns", "us", "ms", "s")
_NEW_HERTZ = ("hz", "Khz", "Mhz", "Ghz")
_VERSION = re.compile(r"(\d{4})\.(\d+)")


class Units(StrEnum):
    """``--print-units`` of ncu."""

    AUTO = "auto"
    BASE = "base"


class Instances(StrEnum):
    """``--print-metric-instances`` of ncu: after the value, in parentheses."""

    NONE = "none"
    VALUES = "values"
    DETAILS = "details"


class Spelling(StrEnum):
    """How units are written: ``usecond`` up to ncu 2024.1, ``us`` later."""

    OLD = "old"
    NEW = "new"


def spelling_of(report: Report) -> Spelling:
    """The spelling of the ncu that captured the report; the new one where that is not known."""
    found = _VERSION.match(report.provenance.tool_version or "")
    if found is None:
        return Spelling.NEW
    is_old = (int(found[1]), int(found[2])) <= (2024, 1)
    return Spelling.OLD if is_old else Spelling.NEW


@dataclass(frozen=True, slots=True)
class Scale:
    """A printed unit, and the power of ten that its numbers are divided by."""

    unit: str
    exponent: int

    def divide(self, value: int | float) -> float:
        """The value in the printed unit, by multiplication as ncu does it."""
        return value * float(f"1e-{self.exponent}")


def scale_of(base: str, largest: float, units: Units, spelling: Spelling) -> Scale:
    """The printed unit for values of a base unit whose largest is known.

    Bytes are scaled up to Tbyte, times to seconds, rates to "per nanosecond".
    """
    times = _OLD_TIMES if spelling is Spelling.OLD else _NEW_TIMES
    has_bytes = "byte" in base
    is_scaled = has_bytes or base in ("ns", "hz") or base.endswith("/s")
    steps = _steps(largest, 4 if has_bytes else 3) if is_scaled and units is Units.AUTO else 0
    per_second = base.removesuffix("/s")
    if has_bytes:
        word = base.replace("byte", f"{_BYTE_PREFIXES[steps]}byte", 1)
        return Scale(re.sub(r"/s$", f"/{times[3]}", word), 3 * steps)
    if base == "ns":
        return Scale(times[steps], 3 * steps)
    if base == "hz":
        text = f"cycle/{times[3 - steps]}" if spelling is Spelling.OLD else _NEW_HERTZ[steps]
        return Scale(text, 3 * steps)
    if per_second != base:
        return Scale(f"{per_second}/{times[3 - steps]}", 3 * steps)
    return Scale(base, 0)


def _steps(largest: float, most: int) -> int:
    """How many times a thousand goes into a number, at most ``most``."""
    steps = 0
    while steps < most and largest >= 1000.0 ** (steps + 1):
        steps += 1
    return steps
