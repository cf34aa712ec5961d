"""Numbers as people read them: three significant digits, always with their unit."""

from __future__ import annotations

import unicodedata

from solscope.model.units import duration_text, scaled

ABSENT = "–"
"""What stands for a number that was not measured. Its reason stands in the kernel's detail."""


def duration(ns: float | None) -> str:
    """A duration, or the dash.

    >>> duration(12_340)
    '12.3 µs'
    """
    return ABSENT if ns is None else duration_text(ns)


def percent(value: float | None) -> str:
    """A percentage (0 to 100, may be more).

    >>> percent(61.23), percent(0.004), percent(104.7)
    ('61.2 %', '<0.01 %', '104.7 %')
    """
    if value is None:
        return ABSENT
    if value == 0:
        return "0 %"
    if 0 < value < 0.01:
        return "<0.01 %"
    decimals = 1 if value >= 9.995 else 2
    return f"{value:.{decimals}f} %"


def fraction(value: float | None) -> str:
    """A fraction as a percentage.

    >>> fraction(0.5)
    '50.0 %'
    """
    return percent(None if value is None else value * 100)


def amount(value: float | None, unit: str) -> str:
    """A quantity with an SI prefix, or the dash.

    >>> amount(874_643_456, "FLOP")
    '875 MFLOP'
    """
    if value is None:
        return ABSENT
    if 0 < abs(value) < 1:
        return f"{value:.3g} {unit}"
    return scaled(value, unit)


def intensity(value: float | None) -> str:
    """FLOP per DRAM byte.

    >>> intensity(1.1776), intensity(1234.5), intensity(0)
    ('1.18 FLOP/B', '1,234 FLOP/B', '0 FLOP/B')
    """
    return ABSENT if value is None else f"{plain(value)} FLOP/B"


def plain(value: float) -> str:
    """A bare number of three significant digits, for ratios.

    >>> plain(0.01234), plain(22.04), plain(0.0000021)
    ('0.0123', '22.0', '2.1e-06')
    """
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    if magnitude >= 1:
        return f"{value:.2f}"
    return f"{value:#.3g}" if magnitude >= 1e-4 else f"{value:.3g}"


def things(number: int, noun: str) -> str:
    """A count with its noun.

    >>> things(1, "kernel"), things(2000, "kernel")
    ('1 kernel', '2,000 kernels')
    """
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def count(value: float | None) -> str:
    """A count with thousands set apart.

    >>> count(1234567)
    '1,234,567'
    """
    return ABSENT if value is None else f"{value:,.0f}"


def clock(hz: float | None) -> str:
    """A clock rate, to the MHz.

    >>> clock(1.755e9)
    '1.755 GHz'
    """
    return ABSENT if hz is None else scaled(hz, "Hz", digits=4)


def between(low: str, high: str) -> str:
    """A range of two shown numbers, their common unit once; one number where both read alike.

    >>> between("1.740 GHz", "1.755 GHz"), between("88.3 GB/s", "4.02 TB/s")
    ('1.740 to 1.755 GHz', '88.3 GB/s to 4.02 TB/s')
    """
    if low == high:
        return high
    if low.partition(" ")[2] == high.partition(" ")[2]:
        low = low.partition(" ")[0]
    return f"{low} to {high}"


def clean(text: str) -> str:
    """Text of a report made safe to show: control and direction marks become visible.

    >>> clean("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\n\t" or category == "Zs":
        return " "
    if category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters, the middle left out: ends tell kernels apart.

    >>> shorten("nvjet_tst_128x256_64x4", 11)
    'nvjet_…64x4'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) * 2 // 5
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"
