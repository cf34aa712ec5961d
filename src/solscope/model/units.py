"""Unit factors of ceilings and of ncu's output. The only conversions in the house.

Spellings of ncu: `nsecond`, `cycle/nsecond`, `Gbyte/second` up to 2024.1; `ns`, `Ghz`,
`Gbyte/s` from 2025. Scaling is by 1000, for bytes too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from solscope.errors import UnknownUnit

_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}

CEILING_FACTORS: Mapping[str, float] = {
    "TFLOP/s": 1e12,
    "PFLOP/s": 1e15,
    "TOP/s": 1e12,
    "POP/s": 1e15,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "GB": 1e9,
    "MiB": 2.0**20,
}
"""Units of a ceilings file to base units (FLOP/s, OP/s, bytes/s, bytes)."""


def ceiling_factor(units: str, *, where: str) -> float:
    """Factor from a ceilings file's units to base units.

    >>> ceiling_factor("TB/s", where="b200_sm100.hbm3e_tbps")
    1000000000000.0

    Raises UnknownUnit for any other spelling.
    """
    try:
        return CEILING_FACTORS[units]
    except KeyError:
        raise UnknownUnit(
            f"no factor for ceiling units {units!r}",
            where=where,
            hint=f"write one of {', '.join(CEILING_FACTORS)}",
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedUnit:
    """How ncu printed a number: ``value * 10**exponent`` is in ``base`` units.

    All of ncu's scales are powers of ten, so that a decimal text is brought to base units
    without a rounding of its own. ``base`` uses the spelling of 2025 and later.
    """

    base: str
    exponent: int


# Spelling to (base spelling, power of ten). Both generations: up to 2024.1 and from 2025.
_TIME_EXPONENTS: Mapping[str, int] = {
    "nsecond": 0,
    "usecond": 3,
    "msecond": 6,
    "second": 9,
    "ns": 0,
    "us": 3,
    "ms": 6,
    "s": 9,
}
_HERTZ_EXPONENTS: Mapping[str, int] = {"hz": 0, "Khz": 3, "Mhz": 6, "Ghz": 9, "Thz": 12}
_BYTE_EXPONENTS: Mapping[str, int] = {
    "byte": 0,
    "Kbyte": 3,
    "Mbyte": 6,
    "Gbyte": 9,
    "Tbyte": 12,
    "Pbyte": 15,
}
# Nouns that are counted and never scaled, as printed by ncu 2019 to 2026.
_COUNTED = re.compile(
    "%|1|SM|TPC|GPC|access|attribute|block|branch|branches|cluster|cta|cycle|inst|node|op|pass|"
    "packet|pixel|primitive|quad|query|ray|register|request|rq|sample|sector|sectors|tag|texel|"
    "thread|transaction|vertex|warp|wavefront"
)
OLD_SPELLINGS: frozenset[str] = frozenset({"nsecond", "usecond", "msecond", "second"})
"""Words that only ncu up to 2024.1 prints; a file with one of them is of that age."""


def is_old_spelling(unit: str) -> bool:
    """Whether the unit is written as ncu did up to 2024.1."""
    return any(part in OLD_SPELLINGS for part in unit.split("/"))


@lru_cache(maxsize=4096)
def printed_unit(text: str) -> PrintedUnit:
    """The unit that ncu printed, as base unit and power of ten.

    >>> printed_unit("Gbyte/second")
    PrintedUnit(base='byte/s', exponent=9)
    >>> printed_unit("Ghz") == printed_unit("cycle/nsecond")
    True
    >>> printed_unit("us")
    PrintedUnit(base='ns', exponent=3)

    Raises UnknownUnit for a spelling that ncu is not known to print.
    """
    unit = text.strip()
    if unit == "":
        return PrintedUnit(base="", exponent=0)
    if unit in _HERTZ_EXPONENTS:
        return PrintedUnit(base="hz", exponent=_HERTZ_EXPONENTS[unit])
    if unit in _TIME_EXPONENTS:
        return PrintedUnit(base="ns", exponent=_TIME_EXPONENTS[unit])
    above, slash, below = unit.partition("/")
    base, exponent = _amount(above, text)
    if not slash:
        return PrintedUnit(base=base, exponent=exponent)
    if below in _TIME_EXPONENTS:
        # "per nanosecond" is 1e9 per second.
        exponent += 9 - _TIME_EXPONENTS[below]
        return PrintedUnit(base="hz" if base == "cycle" else f"{base}/s", exponent=exponent)
    if below == "":
        return PrintedUnit(base=f"{base}/", exponent=exponent)
    # ncu scales the whole value by the prefix, wherever it stands: 6910 %/byte is printed as
    # 6.91 %/Kbyte (2024.1.1).
    per, per_exponent = _amount(below, text)
    return PrintedUnit(base=f"{base}/{per}", exponent=exponent + per_exponent)


def _amount(word: str, text: str) -> tuple[str, int]:
    if word in _BYTE_EXPONENTS:
        return "byte", _BYTE_EXPONENTS[word]
    if word == "" or _COUNTED.fullmatch(word):
        return word, 0
    raise UnknownUnit(
        f"no factor for the unit {text!r}",
        hint="the number was not read; report the unit with the ncu version that printed it",
    )


def scaled(value: float, unit: str, *, digits: int = 3) -> str:
    """A number with an SI prefix, for people.

    >>> scaled(2038.3e9, "B/s")
    '2.04 TB/s'
    >>> scaled(19456, "B"), scaled(999_600, "B")
    ('19.5 KB', '1.00 MB')
    """
    magnitude = abs(value) * _next_prefix(digits)
    for prefix in ("P", "T", "G", "M", "K"):
        if magnitude >= _PREFIX[prefix]:
            return f"{_significant(value / _PREFIX[prefix], digits)} {prefix}{unit}"
    return f"{_significant(value, digits)} {unit}"


def _next_prefix(digits: int) -> float:
    """What turns a number that would be shown as 1000 of a prefix into one of the next."""
    return 1000 / (1000 - 0.5 * 10.0 ** min(0, 3 - digits))


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    magnitude = abs(value)
    decimals = digits - 1
    while magnitude >= 10 and decimals > 0:
        magnitude /= 10
        decimals -= 1
    return f"{value:.{decimals}f}"


def duration_text(ns: float) -> str:
    """A duration for people.

    >>> duration_text(408352), duration_text(999_600)
    ('408 µs', '1.00 ms')
    """
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns * _next_prefix(3) >= factor:
            return f"{_significant(ns / factor, 3)} {unit}"
    return f"{_significant(ns, 3)} ns"
