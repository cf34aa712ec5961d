"""Kubernetes quantities: ``1``, ``500m``, ``2Gi``."""

from __future__ import annotations

from fractions import Fraction

_SUFFIXES = {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}


def parse(text: object) -> Fraction:
    """The exact value.

    >>> parse("500m")
    Fraction(1, 2)
    """
    raw = str(text)
    for suffix, factor in _SUFFIXES.items():
        if raw.endswith(suffix):
            return Fraction(raw[: -len(suffix)]) * factor
    if raw.endswith("m"):
        return Fraction(raw[:-1]) / 1000
    return Fraction(raw)


def show(value: Fraction) -> str:
    """The value as short as it can be said in thousandths."""
    return str(value) if value.denominator == 1 else f"{int(value * 1000)}m"
