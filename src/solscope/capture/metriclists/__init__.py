"""A question, a chip and a data type in, a metric list out. Never counts passes itself."""

from __future__ import annotations

from solscope.capture.metriclists.chips import ChipName, identify, known
from solscope.capture.metriclists.lists import (
    base_of,
    choose_tensor,
    dtype_named,
    dtypes,
    dtypes_of,
    for_level,
)

__all__ = [
    "ChipName",
    "base_of",
    "choose_tensor",
    "dtype_named",
    "dtypes",
    "dtypes_of",
    "for_level",
    "identify",
    "known",
]
