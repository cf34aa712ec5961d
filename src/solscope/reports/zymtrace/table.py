"""Samples as columns, each kernel once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


_TOTALS = frozenset({"total", "grand total", "sum", "all", "(total)"})
_SAME_WITHIN = 0.01  # of rounded numbers

Row = tuple[str, float | None, float | None]
"""Name, samples, share."""


def without_totals(rows: Sequence[Row]) -> list[Row]:
    """The rows without one that bears no kernel's name and is the sum of the others."""
    kept = [row for row in rows if row[0].strip().lower() not in _TOTALS]
    totals = [row for row in rows if row[0].strip().lower() in _TOTALS]
    if len(totals) != 1:
        return list(rows)
    (_, samples, share) = totals[0]
    is_total = _is_sum(samples, [row[1] for row in kept]) and _is_sum(
        share, [row[2] for row in kept]
    )
    return kept if is_total else list(rows)


def _is_sum(total: float | None, parts: Sequence[float | None]) -> bool:
    known = [part for part in parts if part is not None]
    if total is None:
        return not known
    return bool(known) and abs(total - sum(known)) <= _SAME_WITHIN * total


def sample_table(
    names: Sequence[str], samples: Sequence[float | None], shares: Sequence[float | None]
) -> pa.Table:
    """Columns ``name``, ``samples``, ``share``; rows of one name are added up."""
    import pyarrow as pa

    table = pa.table(
        {
            "name": pa.array(names, pa.string()),
            "samples": pa.array(samples, pa.float64()),
            "share": pa.array(shares, pa.float64()),
        }
    )
    if table.num_rows == len(set(names)):
        return table
    summed = table.group_by("name", use_threads=False).aggregate(
        [("samples", "sum"), ("share", "sum")]
    )
    return pa.table(
        {
            "name": summed["name"],
            "samples": summed["samples_sum"],
            "share": summed["share_sum"],
        }
    )
