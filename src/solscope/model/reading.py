"""How a file was understood: for ``solscope read --explain``."""

from __future__ import annotations

from dataclasses import dataclass

from solscope.model.report import MetricValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading:
    """A column (or a label) and the number that one of its cells became.

    ``base_unit`` and ``factor`` say what the printed number was multiplied by; ``metric`` is
    ``None`` where label and section name no metric.
    """

    column: str
    metric: str | None
    unit: str
    base_unit: str
    factor: float
    example: str
    value: MetricValue | None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """What a file is, how its text was decoded, and how each of its columns was read."""

    path: str
    kind: str
    encoding: str
    delimiter: str | None
    lines_before_table: int
    has_units_row: bool
    number_format: str
    columns: tuple[ColumnReading, ...]
