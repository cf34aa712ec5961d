"""Metric list and chip in, replay passes out. Needs no GPU. Never runs ncu."""

from __future__ import annotations

from solscope.capture.passes.estimate import (
    Checked,
    LibraryCounters,
    check,
    counters_of,
    load_library,
    of_list,
)
from solscope.capture.passes.library import installed
from solscope.capture.passes.table import TableCounters, set_names

__all__ = [
    "Checked",
    "LibraryCounters",
    "TableCounters",
    "check",
    "counters_of",
    "installed",
    "load_library",
    "of_list",
    "set_names",
]
