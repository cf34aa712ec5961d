"""Labelled metrics and rule messages of a launch, as the details page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from solscope.model.reading import ColumnReading
from solscope.model.report import (
    Instance,
    MetricValue,
    NvtxRange,
    PlainDetails,
    PlainMetrics,
    RuleAdvice,
    Section,
    SectionMetric,
)
from solscope.model.units import printed_unit
from solscope.reports.printed.labels import Era, meanings, metric_of, rollups, section_identifier
from solscope.reports.printed.launches import Identity, device_of
from solscope.reports.printed.notes import Notes, is_rounded_to_zero
from solscope.reports.printed.number_format import NumberFormat
from solscope.reports.printed.values import (
    PER_CYCLE,
    Absent,
    Instanced,
    half_digit,
    is_other_value,
    measured,
    needs_unit,
    value_of,
)

_RULE_KINDS = {"OK": "ok", "INF": "ok", "WRN": "warning", "ERR": "error", "OPT": "optimization"}


def rule_kind(printed: str) -> str:
    """ncu's message type by its printed short form; ``none`` where a rule only shows a table."""
    return _RULE_KINDS.get(printed.strip().upper(), "none")


@dataclass(frozen=True, slots=True)
class PrintedMetric:
    """A row of the details page: where it stands, its label, unit and value as printed.

    ``states_unit`` is ``False`` where the page has lost its column of units. An empty unit in
    that column is ncu's own for unscaled numbers, also of metrics that it does not know.
    """

    section: str
    item: str
    label: str
    unit: str
    text: str
    states_unit: bool = True

    def metric(self, *, era: Era, capability: tuple[int, int] | None = None) -> str | None:
        """The metric's name, ``None`` where label and section do not say."""
        return metric_of(
            self.section, self.item, self.label, self.unit, era=era, capability=capability
        )

    @property
    def place(self) -> str:
        """Section, item and label as one name, for what has no metric name."""
        return ": ".join(part for part in (self.section, self.item, self.label) if part)

    def value(self, numbers: NumberFormat) -> MetricValue | Absent | Instanced:
        """The value in base units. Raises UnknownUnit."""
        unit = printed_unit(self.unit)
        return measured(value_of(self.text, unit.exponent, numbers), unit)

    def lacks_unit(self, metric: str | None) -> bool:
        """Whether the number could mean several things, because its unit is not printed."""
        return metric is not None and not self.states_unit and needs_unit(metric)

    def explain(self, numbers: NumberFormat, metric: str | None) -> ColumnReading:
        """How the row was understood, as this metric or as none."""
        unit, value, note = printed_unit(self.unit), self.value(numbers), None
        if isinstance(value, Instanced):
            note = f"{len(value.instances)} instances"
            value = value.aggregate
        if self.lacks_unit(metric):
            value, note = Absent.NOT_AVAILABLE, "no unit is stated: a scaled number cannot be read"
        elif isinstance(value, Absent):
            note = value.value
        elif metric is None:
            count = meanings(self.section, self.item, self.label)
            note = (
                f"one of {count} metrics, by ncu's version or the chip, which the page does not say"
                if count > 1
                else "section and label name no known metric"
            )
        return ColumnReading(
            column=self.place,
            metric=metric,
            unit=self.unit,
            base_unit=unit.base,
            factor=float(f"1e{unit.exponent}"),
            example=self.text[:60],
            value=None if isinstance(value, Absent) else value,
            note=note,
        )


@dataclass(slots=True)
class PrintedLaunch:
    """A launch of the details page, its rows in the order printed."""

    identity: Identity
    nvtx: tuple[NvtxRange, ...] = ()
    metrics: list[PrintedMetric] = field(default_factory=list)
    rules: list[RuleAdvice] = field(default_factory=list)

    def named(self, numbers: NumberFormat, era: Era) -> Iterator[tuple[PrintedMetric, str | None]]:
        """Each row with its metric's name, ``None`` where it is not known. Raises UnknownUnit."""
        chip = device_of(self.identity, {}).compute_capability
        by_order = self._rollups(numbers)
        for position, row in enumerate(self.metrics):
            yield row, by_order.get(position) or row.metric(era=era, capability=chip)

    def _rollups(self, numbers: NumberFormat) -> dict[int, str]:
        """Names for the rows of labels that show mean, maximum, minimum and sum of a counter.

        The rows come in that order, and the values must bear it out; else they stay unnamed.
        """
        rows: dict[tuple[str, str, str], list[int]] = {}
        for position, row in enumerate(self.metrics):
            if row.item and rollups(row.section, row.item, row.label):
                rows.setdefault((row.section, row.item, row.label), []).append(position)
        found: dict[int, str] = {}
        for place, positions in rows.items():
            if _are_rollups([self.metrics[i].value(numbers) for i in positions]):
                found.update(zip(positions, rollups(*place), strict=True))
        return found

    def read(
        self, numbers: NumberFormat, notes: Notes, *, era: Era
    ) -> tuple[PlainMetrics, PlainDetails]:
        """Metrics and sections in base units. Raises UnknownUnit."""
        values: dict[str, MetricValue] = {}
        instances: dict[str, tuple[Instance, ...]] = {}
        valueless: dict[str, None] = {}
        halves: dict[str, float] = {}
        sections: dict[str, list[tuple[str, str, str]]] = {}
        for row, known in self.named(numbers, era):
            name = row.place if known is None else known
            if known is None:
                several = meanings(row.section, row.item, row.label) > 1
                (notes.ambiguous_labels if several else notes.unknown_labels)[name] = None
            sections.setdefault(row.section, []).append((row.item, row.label, name))
            value = row.value(numbers)
            if name.endswith(PER_CYCLE):
                halves[name] = half_digit(row.text, printed_unit(row.unit).exponent, numbers)
            if is_rounded_to_zero(row.text):
                notes.rounded[name] = None
            if isinstance(value, Instanced):
                instances.setdefault(name, value.instances)
                value = value.aggregate
            if row.lacks_unit(known) and not isinstance(value, Absent):
                notes.without_unit[name] = None
                value = Absent.NOT_AVAILABLE
            if isinstance(value, Absent):
                valueless[name] = None
                notes.absent(name, value)
            elif name not in values and name not in valueless:
                values[name] = value
            elif name in values and _differ(values[name], value, same_metric=known is not None):
                notes.differing[name] = None
                if known is None:
                    # One label for several metrics (mean, maximum, ...): no value is its value.
                    del values[name]
                    valueless[name] = None
        without = tuple(name for name in valueless if name not in values)
        return PlainMetrics(values, instances, without, halves), PlainDetails(
            section_list=tuple(_section(name, rows) for name, rows in sections.items()),
            rule_list=tuple(self.rules),
            nvtx_list=self.nvtx,
        )


def _are_rollups(values: Sequence[MetricValue | Absent | Instanced]) -> bool:
    """Whether four values can be mean, maximum, minimum and sum, or are all absent."""
    if len(values) != 4 or all(isinstance(value, Absent) for value in values):
        return len(values) == 4
    if not all(isinstance(value, int | float) for value in values):
        return False
    mean, high, low, total = (float(value) for value in values if isinstance(value, int | float))
    half = 0.005  # of a mean in two decimals
    return low - half <= mean <= high + half and low <= high <= total


def _section(display_name: str, rows: list[tuple[str, str, str]]) -> Section:
    return Section(
        identifier=section_identifier(display_name),
        display_name=display_name,
        header=tuple(
            SectionMetric(label=label, metric=name) for item, label, name in rows if not item
        ),
        metrics=tuple(dict.fromkeys(name for _, _, name in rows)),
    )


def _differ(first: MetricValue, second: MetricValue, *, same_metric: bool) -> bool:
    """Whether two rows contradict each other. Two rows of a label alone may be two metrics,
    however near their values are."""
    return is_other_value(first, second) if same_metric else first != second
