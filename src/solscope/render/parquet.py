"""What `read` found as one Parquet table, typed, for notebooks and databases.

Base units throughout. What was not measured is null. The file's own metadata names the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from re import Pattern
from typing import TYPE_CHECKING, Any

from solscope.model.report import Report
from solscope.model.trace import SampleReport, TimelineReport
from solscope.render import overview, timelines

if TYPE_CHECKING:
    import pyarrow as pa


def metrics(reports: Sequence[Report], wanted: Pattern[str] | None) -> bytes:
    """A row per launch and metric: numbers in ``value``, texts (and nan, inf) in ``text``."""
    import pyarrow as pa

    schema = pa.schema(
        [
            ("report", pa.string()),
            ("launch", pa.int64()),
            ("kernel", pa.string()),
            ("metric", pa.string()),
            ("value", pa.float64()),
            ("text", pa.string()),
            ("unit", pa.string()),
        ]
    )
    rows = (
        (
            *head,
            None if isinstance(value, str) else value,
            value if isinstance(value, str) else None,
            unit,
        )
        for *head, value, unit in overview.metric_rows(reports, wanted)
    )
    return _file(schema, rows)


def kernels(reports: Sequence[TimelineReport | SampleReport]) -> bytes:
    """A row per file, kernel, process and device, as the CSV has them."""
    import pyarrow as pa

    types = (
        pa.string(),
        pa.string(),
        pa.float64(),
        pa.float64(),
        pa.float64(),
        pa.int64(),
        pa.int64(),
    )
    schema = pa.schema(list(zip(timelines.KERNEL_COLUMNS, types, strict=True)))
    return _file(schema, timelines.kernel_rows(reports))


def _file(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    named = schema.with_metadata({"solscope.schema": overview.READ_SCHEMA})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=named), sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
