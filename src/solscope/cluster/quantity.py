"""Amounts of resources as Kubernetes writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_QUANTITY = re.compile(r"(?P<number>[\d.]+(?:[eE][-+]?\d+)?)(?P<suffix>[a-zA-Z]*)")
_FACTOR: Mapping[str, float] = {
    "": 1,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}


def quantity(value: object) -> float | None:
    """A resource quantity in base units; ``None`` where it cannot be read.

    >>> quantity("20G"), quantity("1Gi"), quantity("500m"), quantity(None)
    (20000000000.0, 1073741824.0, 0.5, None)
    """
    match = _QUANTITY.fullmatch(str(value).strip()) if value is not None else None
    if match is None or match["suffix"] not in _FACTOR:
        return None
    try:
        amount = float(match["number"]) * _FACTOR[match["suffix"]]
    except ValueError:
        return None
    return amount if math.isfinite(amount) else None
