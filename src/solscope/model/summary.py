"""Summaries over many launches, as ncu prints them with ``--print-summary``."""

from __future__ import annotations

from dataclasses import dataclass

from solscope.model.report import Device, Dim3, MetricValue, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """Minimum, maximum and mean of one metric over the launches, in the base unit ``unit``
    (empty for pure numbers).

    ``None`` where ncu printed no number.
    """

    metric: str
    section: str
    minimum: MetricValue | None
    maximum: MetricValue | None
    average: MetricValue | None
    unit: str = ""

    def rollups(self) -> tuple[tuple[str, MetricValue | None], ...]:
        """The three numbers with their names."""
        return (
            ("minimum", self.minimum),
            ("maximum", self.maximum),
            ("average", self.average),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSummary:
    """All launches of one kernel (or of one GPU, one NVTX range): how many, and their metrics."""

    name: str
    name_full: str
    invocations: int | None
    device: Device
    process_id: int | None
    grid: Dim3 | None
    block: Dim3 | None
    metrics: tuple[MetricSummary, ...]

    def metric(self, name: str) -> MetricSummary | None:
        """The summary of a metric by its full name, ``None`` where it was not printed."""
        return next((m for m in self.metrics if m.metric == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryReport(Report):
    """A report that holds summaries and no launch: nothing in it can be totalled."""

    summaries: tuple[LaunchSummary, ...] = ()
