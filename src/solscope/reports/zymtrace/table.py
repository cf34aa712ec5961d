"""Samples as columns, each kernel once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


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
