"""The details page: a row for each metric of each section, and a row for each rule message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from sys import intern

from solscope.errors import ReportError
from solscope.model.reading import ColumnReading
from solscope.model.report import Device, KernelLaunch, NvtxRange, RuleAdvice
from solscope.reports.ncu_csv.layout import Table
from solscope.reports.ncu_csv.rows import Columns
from solscope.reports.printed.issue_slots import era_by_arithmetic
from solscope.reports.printed.labels import Era, era_of
from solscope.reports.printed.launches import device_of, dim3, launch, nvtx_ranges
from solscope.reports.printed.notes import Notes
from solscope.reports.printed.number_format import NumberFormat
from solscope.reports.printed.sections import PrintedLaunch, PrintedMetric, rule_kind
from solscope.reports.printed.values import count_few_digits, number_texts, unit_text


@dataclass(slots=True)
class DetailRows:
    """Launches of a details page, their metrics still as text, in the order printed."""

    launches: dict[tuple[str, ...], PrintedLaunch] = field(default_factory=dict)

    def era(self, numbers: NumberFormat) -> Era:
        """Which ncu printed the page."""
        era = era_of((m.label, m.unit) for p in self.launches.values() for m in p.metrics)
        return era if era is not Era.UNCLEAR else era_by_arithmetic(self.launches.values(), numbers)

    def number_texts(self) -> Iterator[str]:
        """All value cells, to find out how numbers are written."""
        for printed in self.launches.values():
            for metric in printed.metrics:
                yield from number_texts(metric.text)

    def known(self) -> Iterator[tuple[str, int]]:
        """Numbers that the fixed cells state too: the launch's dimensions."""
        for printed in self.launches.values():
            for metric in printed.metrics:
                for label, name, cell in (
                    ("Grid Size", "launch__grid_size", printed.identity.grid),
                    ("Block Size", "launch__block_size", printed.identity.block),
                ):
                    size = dim3(cell)
                    if size is not None and not metric.item and metric.label in (label, name):
                        yield metric.text, size[0] * size[1] * size[2]


def gather(table: Table, notes: Notes) -> DetailRows:
    """Metrics and rule messages of each launch.

    Rows of one launch share ID, process and all else that tells launches apart. Raises
    ReportError for a table without IDs: which rows belong together is then not known.
    """
    columns = Columns(table.header)
    if "ID" not in columns.position:
        raise ReportError(
            "the details page has no ID column, so that launches cannot be told apart",
            hint="export it again: ncu --import REPORT --csv --page details",
        )
    found = DetailRows()
    notes.few_digits += count_few_digits(table.text)
    last_row = _last_whole_row(table, notes, columns)
    for number, row in enumerate(table.rows()):
        if number >= last_row:
            break
        if columns.is_row(row):
            identity_key = columns.launch_key(row)
            printed = found.launches.get(identity_key)
            if printed is None or len(row) > columns.width:
                columns.refuse_moved(row)
            if printed is None:
                printed = _begin(columns, row)
                found.launches[identity_key] = printed
            _add(printed, columns, row, notes)
        elif columns.lost_its_number(row):
            notes.unnumbered += 1
        elif any(row):
            notes.stray(row)
    return found


def repeated(every: Sequence[DetailRows]) -> int:
    """How many launches stand in several tables, equal in every row."""
    count = 0
    seen: dict[tuple[str, ...], list[list[PrintedMetric]]] = {}
    for rows in every:
        for key, printed in rows.launches.items():
            alike = seen.setdefault(key, [])
            count += printed.metrics in alike
            alike.append(printed.metrics)
    return count


def _last_whole_row(table: Table, notes: Notes, columns: Columns) -> int:
    """How many rows are whole: all, or all but the last where the file was cut in it."""
    if not table.is_cut_in_a_cell and table.ends_in_a_line:
        return 1 << 62
    lengths = [len(row) for row in table.rows()]
    count = len(lengths)
    short = not lengths or lengths[-1] <= columns.position["Metric Value"]
    if not table.is_cut_in_a_cell and not short:
        return count
    notes.cut = True
    return max(0, count - 1)


def _begin(columns: Columns, row: Sequence[str]) -> PrintedLaunch:
    ranges: list[NvtxRange] = []
    for i, name in columns.nvtx:
        ranges.extend(nvtx_ranges(name, row[i] if i < len(row) else ""))
    return PrintedLaunch(columns.identity(row), nvtx=tuple(ranges))


def _add(printed: PrintedLaunch, columns: Columns, row: Sequence[str], notes: Notes) -> None:
    label = columns.cell(row, "Metric Name")
    if unit_text(label):
        if len(row) <= columns.position["Metric Value"]:
            notes.short_rows += 1
        printed.metrics.append(
            PrintedMetric(
                intern(columns.cell(row, "Section Name")),
                intern(unit_text(columns.cell(row, "Body Item Label"))),
                intern(label),
                intern(unit_text(columns.cell(row, "Metric Unit"))),
                columns.cell(row, "Metric Value"),
                "Metric Unit" in columns.position,
            )
        )
        return
    rule, message = (
        cell if unit_text(cell) else ""
        for cell in (columns.cell(row, "Rule Name"), columns.cell(row, "Rule Description"))
    )
    if rule or message:
        printed.rules.append(
            RuleAdvice(
                rule=rule,
                name=rule,
                section=columns.cell(row, "Section Name") or None,
                message=message,
                kind=rule_kind(columns.cell(row, "Rule Type")),
                speedup_kind=unit_text(columns.cell(row, "Estimated Speedup Type")) or None,
                speedup_pct=_percent(columns.cell(row, "Estimated Speedup")),
            )
        )


def _percent(text: str) -> float | None:
    """ncu prints the estimate through the locale, too; it never needs thousands."""
    bare = text.strip().rstrip("%").strip().replace(",", ".")
    try:
        value = float(bare) if bare.replace(".", "", 1).isdigit() else None
    except ValueError:
        return None
    return value


def launches(
    rows: DetailRows, numbers: NumberFormat, notes: Notes, *, first: int = 0
) -> tuple[KernelLaunch, ...]:
    """The launches of the page, values in base units, counted from ``first``.

    Raises UnknownUnit for a unit that ncu is not known to print.
    """
    devices: dict[Device, Device] = {}
    made = []
    era = rows.era(numbers)
    for index, printed in enumerate(rows.launches.values(), first):
        metrics, details = printed.read(numbers, notes, era=era)
        device = device_of(printed.identity, metrics.values)
        device = devices.setdefault(device, device)
        made.append(launch(index, printed.identity, metrics, device, details))
    return tuple(made)


def explain(rows: DetailRows, numbers: NumberFormat) -> Iterator[ColumnReading]:
    """How each label was understood, by its first appearance."""
    seen: set[tuple[str, str, str, str, str | None]] = set()
    era = rows.era(numbers)
    for printed in rows.launches.values():
        for row, metric in printed.named(numbers, era):
            key = (row.section, row.item, row.label, row.unit, metric)
            if key not in seen:
                seen.add(key)
                yield row.explain(numbers, metric)
