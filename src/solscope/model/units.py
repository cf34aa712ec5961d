"""Unit factors of ceilings and of ncu's output. The only conversions in the house.

Spellings of ncu: `nsecond`, `cycle/nsecond`, `Gbyte/second` up to 2024.1; `ns`, `Ghz`,
`Gbyte/s` from 2025. Scaling is by 1000, for bytes too.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def scaled(value: float, unit: str, *, digits: int = 3) -> str:
    """A number with an SI prefix, for people.

    >>> scaled(2038.3e9, "B/s")
    '2.04 TB/s'
    >>> scaled(19456, "B")
    '19.5 KB'
    """
    magnitude = abs(value)
    for prefix in ("P", "T", "G", "M", "K"):
        if magnitude >= _PREFIX[prefix]:
            return f"{_significant(value / _PREFIX[prefix], digits)} {prefix}{unit}"
    return f"{_significant(value, digits)} {unit}"


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

    >>> duration_text(408352)
    '408 µs'
    """
    for limit, factor, unit in ((1e9, 1e9, "s"), (1e6, 1e6, "ms"), (1e3, 1e3, "µs")):
        if ns >= limit:
            return f"{_significant(ns / factor, 3)} {unit}"
    return f"{_significant(ns, 3)} ns"
