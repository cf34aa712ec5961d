"""The raw page: a header, a row of units, and a row for each launch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from solscope.errors import ReportError, UnknownUnit
from solscope.model.metric_units import unit_of
from solscope.model.reading import ColumnReading
from solscope.model.report import (
    Device,
    Instance,
    KernelLaunch,
    MetricValue,
    PlainDetails,
    PlainMetrics,
)
from solscope.model.units import PrintedUnit, printed_unit
from solscope.reports.ncu_csv.layout import FIXED_COLUMNS, Table, is_nvtx
from solscope.reports.ncu_csv.rows import Columns
from solscope.reports.printed.launches import device_of, dim3, launch, nvtx_ranges
from solscope.reports.printed.notes import Notes
from solscope.reports.printed.number_format import PLAIN, NumberFormat
from solscope.reports.printed.values import (
    PER_CYCLE,
    Absent,
    Instanced,
    column_values,
    count_few_digits,
    half_digit,
    is_other_value,
    measured,
    needs_unit,
    number_texts,
    plain_column,
    unit_text,
    value_of,
)

_SIX_DECIMALS = re.compile(r"-?\d+\.\d{6}")
_WHOLE = ("device__attribute_", "c2clink__", "numa__", "nvlink__", "profiler__")


_Cell = MetricValue | Absent | Instanced


@dataclass(slots=True)
class RawRows:
    """Rows of a raw page, cut into table columns and metric columns, still as text."""

    columns: Columns
    metrics: tuple[tuple[int, str], ...]
    units: tuple[str, ...] | None
    rows: list[list[str]]
    notes: Notes
    _fixed: bool | None = None
    _columns: Sequence[tuple[str, ...]] = ()

    def cells(self, i: int) -> Sequence[str]:
        """The cells of a column of the table."""
        if not self._columns and self.rows:
            self._columns = tuple(zip(*self.rows, strict=True))
        return self._columns[i] if self.rows else ()

    @property
    def scaled_are_fixed(self) -> bool:
        """Whether numbers with a unit have six decimals after a point, whatever the locale.

        So ncu 2024.1.1 prints the raw page with scaled units, beside unitless numbers in the
        locale's format: 4468.363636 and 46,55 stand in one row.
        """
        if self._fixed is None:
            self._fixed = any(
                _SIX_DECIMALS.fullmatch(cell) is not None
                for position, (i, _) in enumerate(self.metrics)
                if self.has_unit(position)
                for cell in self.cells(i)[:20]
            )
        return self._fixed

    def has_unit(self, position: int) -> bool:
        """Whether the column at this position among the metrics has a unit."""
        return self.units is not None and self.units[position] != ""

    def number_texts(self) -> Iterator[str]:
        """The value cells that follow the locale, to find out how numbers are written."""
        for position, (i, _) in enumerate(self.metrics):
            if self.scaled_are_fixed and self.has_unit(position):
                continue
            for cell in dict.fromkeys(self.cells(i)):
                if "(" in cell:
                    yield from number_texts(cell)
                else:
                    yield cell

    def known(self) -> Iterator[tuple[str, int]]:
        """Numbers that another cell of the row states too: the launch's dimensions."""
        by_name = {name: i for i, name in self.metrics}
        # Attributes of a device are whole numbers, so that no mark in one is a decimal mark.
        attributes = [i for i, name in self.metrics if name.startswith("device__attribute_")]
        for row in self.rows[:50]:
            for i in attributes:
                digits = row[i].replace(".", "").replace(",", "")
                if digits != row[i] and digits.isascii() and digits.isdigit():
                    yield row[i], int(digits[:18])
            grid = dim3(self.columns.cell(row, "Grid Size"))
            block = dim3(self.columns.cell(row, "Block Size"))
            for name, size in (("launch__grid_size", grid), ("launch__block_size", block)):
                if size is not None and name in by_name:
                    yield row[by_name[name]], size[0] * size[1] * size[2]


def gather(table: Table, notes: Notes) -> RawRows:
    """The rows of a raw page, padded to the header's width, without lines that are none."""
    columns = Columns(table.header)
    metrics = tuple(
        (i, name)
        for i, name in enumerate(table.header)
        if name and name not in FIXED_COLUMNS and not is_nvtx(name)
    )
    units: tuple[str, ...] | None = None
    notes.few_digits += count_few_digits(table.text)
    rows: list[list[str]] = []
    last: Sequence[str] = ()
    for row in table.rows():
        last = row
        if columns.is_row(row):
            columns.refuse_moved(row)
            rows.append(row)
        elif _is_units_row(columns, row):
            stated = tuple(unit_text(row[i]) if i < len(row) else "" for i, _ in metrics)
            if not (rows or units) or _are_units(stated):
                units = _same_units(units, stated)
        elif columns.lost_its_number(row):
            notes.unnumbered += 1
        elif any(row) and tuple(row) != table.header:
            notes.stray(row)
    if units is not None:
        metrics, units = _ncus(metrics, units, notes)
    short = len(last) < columns.width and not table.ends_in_a_line
    if table.is_cut_in_a_cell or short:
        notes.cut = True
        if rows and rows[-1] is last:
            rows.pop()
        if not rows:
            units = None  # cut in the row of units
    for row in rows:
        if len(row) < columns.width:
            notes.short_rows += 1
            row.extend([""] * (columns.width - len(row)))
        del row[columns.width :]
    return RawRows(columns, metrics, units, rows, notes)


def _same_units(held: tuple[str, ...] | None, found: tuple[str, ...]) -> tuple[str, ...]:
    """The units of a table, wherever their row stands: sorting puts it last. Raises ReportError
    where a second row states others."""
    if held is not None and any(held) and held != found:
        raise ReportError(
            "one table has two rows of units, and they differ: the output of several processes is "
            "mixed, or pages were joined without their headers",
            hint="give each page, header and units, a file of its own",
        )
    return found


def _ncus(
    metrics: tuple[tuple[int, str], ...], units: tuple[str, ...], notes: Notes
) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
    """The metrics with their units, without columns of somebody's own: those have something else
    in the row of units, and no name of a metric."""
    own = [
        position
        for position, (_, name) in enumerate(metrics)
        if "__" not in name and units[position] and not _are_units((units[position],))
    ]
    if not own:
        return metrics, units
    notes.foreign.update(dict.fromkeys(metrics[position][1] for position in own))
    kept = [position for position in range(len(metrics)) if position not in own]
    return tuple(metrics[at] for at in kept), tuple(units[at] for at in kept)


def repeated(raws: Sequence[RawRows]) -> int:
    """How many rows equal an earlier one in every cell: the same launch, printed twice. Without
    IDs, launches may well be alike."""
    seen: dict[object, list[list[str]]] = {}
    for raw in raws:
        for row in raw.rows if "ID" in raw.columns.position else ():
            key = (raw.metrics, raw.units, raw.columns.launch_key(row))
            seen.setdefault(key, []).append(row)
    several = [alike for alike in seen.values() if len(alike) > 1]
    return sum(len(alike) - len({tuple(row) for row in alike}) for alike in several)


def _is_units_row(columns: Columns, row: Sequence[str]) -> bool:
    """The units stand in a row whose fixed cells are blank; its metric cells may all be too."""
    if columns.is_row(row) or len(row) < 2:
        return False
    return not any(unit_text(columns.cell(row, name)) for name in FIXED_COLUMNS)


def _are_units(stated: Sequence[str]) -> bool:
    """Whether there is something in these cells, and nothing but units that ncu prints."""
    try:
        return any(stated) and all(printed_unit(text) for text in stated)
    except UnknownUnit:
        return False


def launches(raw: RawRows, numbers: NumberFormat, *, first: int = 0) -> tuple[KernelLaunch, ...]:
    """The launches of the page, values in base units, counted from ``first``.

    Raises UnknownUnit for a unit that ncu is not known to print.
    """
    if not raw.rows:
        return ()
    columns = _Columns(raw.notes)
    for position, (i, name) in enumerate(raw.metrics):
        unit, form = _unit(raw, position, name), _format(raw, position, numbers)
        cells = raw.cells(i)
        if unit is None:
            raw.notes.without_unit[name] = None
            columns.add(name, [Absent.NOT_AVAILABLE] * len(cells), {Absent.NOT_AVAILABLE})
            continue
        if _hides_small_values(raw, position, cells, unit):
            raw.notes.rounded[name] = None
        numeric = plain_column(cells, unit.exponent, form)
        if numeric is not None:
            columns.add(name, numeric, ())
        else:
            read = {c: measured(value_of(c, unit.exponent, form), unit) for c in set(cells)}
            columns.add(name, [read[cell] for cell in cells], read.values())
    devices: dict[Device, Device] = {}
    rates = _rates(raw, numbers)
    made = []
    plain_rows = _rows(columns.plain, len(raw.rows))
    mixed_rows = _rows(columns.mixed, len(raw.rows))
    for position, row in enumerate(raw.rows):
        values: dict[str, MetricValue] = dict(zip(columns.plain, next(plain_rows), strict=True))
        metrics = columns.metrics(values, next(mixed_rows))
        halves = {
            name: half for name, of in rates.items() if name in values and (half := of[position])
        }
        if halves:
            metrics = replace(metrics, half_digits=halves)
        identity = raw.columns.identity(row)
        device = device_of(identity, metrics.values)
        ranges = [r for i, name in raw.columns.nvtx for r in nvtx_ranges(name, row[i])]
        made.append(
            launch(
                first + position,
                identity,
                metrics,
                devices.setdefault(device, device),
                PlainDetails(nvtx_list=tuple(ranges)),
            )
        )
    return tuple(made)


class _Columns:
    """The columns by what has to be looked at in each row: nothing where every cell is a value,
    or where none is."""

    def __init__(self, notes: Notes) -> None:
        self.plain: dict[str, Sequence[MetricValue]] = {}
        self.mixed: dict[str, Sequence[_Cell]] = {}
        self._empty: dict[str, Absent] = {}
        self._valueless: list[str] = []  # in every launch
        self._notes = notes

    def add(self, name: str, found: Sequence[_Cell], distinct: Collection[_Cell]) -> None:
        """One column; ``distinct`` is what it holds beside numbers, empty where nothing."""
        if name in self.plain or name in self.mixed or name in self._empty:
            self._note_if_differing(name, found)  # somebody added a column under the same name
        elif all(isinstance(value, int | float | str) for value in distinct):
            self.plain[name] = cast("Sequence[MetricValue]", found)
        elif len(distinct) == 1 and isinstance(missing := next(iter(distinct)), Absent):
            self._empty[name] = missing
            if missing is not Absent.NOT_COLLECTED:
                self._valueless.append(name)
                self._notes.absent(name, missing)
        else:
            self.mixed[name] = found

    def _note_if_differing(self, name: str, other: Sequence[_Cell]) -> None:
        kept: Sequence[_Cell] = self.plain.get(name, self.mixed.get(name, ()))
        kept = kept or [self._empty.get(name, Absent.NOT_COLLECTED)] * len(other)
        if any(is_other_value(one, two) for one, two in zip(kept, other, strict=True)):
            self._notes.differing[name] = None

    def metrics(self, values: dict[str, MetricValue], mixed: Sequence[_Cell]) -> PlainMetrics:
        """Metrics of a launch: ``values``, and what its cells in the mixed columns add;
        instances and names without a value apart."""
        instances: dict[str, tuple[Instance, ...]] = {}
        valueless = self._valueless.copy()
        for name, value in zip(self.mixed, mixed, strict=True):
            if isinstance(value, int | float | str):
                values[name] = value
            elif isinstance(value, Instanced):
                instances[name] = value.instances
                if isinstance(value.aggregate, Absent):
                    valueless.append(name)
                else:
                    values[name] = value.aggregate
            elif value is not Absent.NOT_COLLECTED:
                valueless.append(name)
                self._notes.absent(name, value)
        return PlainMetrics(values, instances, tuple(valueless))


def _unit(raw: RawRows, position: int, name: str) -> PrintedUnit | None:
    """The unit of a column, ``None`` where the number could mean several things.

    An ncu that is older than the report knows no units of its metrics: it leaves their cells in
    the row of units empty, and prints the numbers unscaled (seen with 2024.1.1 on a B200's).
    """
    if raw.units is not None:
        return printed_unit(raw.units[position])
    base = unit_of(name)
    return None if base is None or needs_unit(name) else PrintedUnit(base=base, exponent=0)


def _hides_small_values(
    raw: RawRows, position: int, cells: Sequence[str], unit: PrintedUnit
) -> bool:
    """Whether a cell shows zero and may hide a number: six decimals of a Gbyte leave 500 bytes.

    Attributes and counts are whole numbers; ``--print-fp`` prints decimals of them all the same.
    """
    name = raw.metrics[position][1]
    if name.startswith(_WHOLE) or (name.endswith(".sum") and unit.exponent == 0):
        return False
    if raw.scaled_are_fixed and raw.has_unit(position):
        return unit.base == "byte" and unit.exponent >= 9 and "0.000000" in cells
    return any(text in cells for text in ("0.00", "0,00"))


def _rates(raw: RawRows, numbers: NumberFormat) -> dict[str, list[float]]:
    """Half of the last digit in each row, for the columns of counters per cycle."""
    found = {}
    for position, (i, name) in enumerate(raw.metrics):
        unit = _unit(raw, position, name) if name.endswith(PER_CYCLE) else None
        if unit is not None:
            form = _format(raw, position, numbers)
            halves = {c: half_digit(c, unit.exponent, form) for c in set(raw.cells(i))}
            found[name] = [halves[cell] for cell in raw.cells(i)]
    return found


def _format(raw: RawRows, position: int, numbers: NumberFormat) -> NumberFormat:
    return PLAIN if raw.scaled_are_fixed and raw.has_unit(position) else numbers


T = TypeVar("T")


def _rows(columns: Mapping[str, Sequence[T]], count: int) -> Iterator[tuple[T, ...]]:
    return zip(*columns.values(), strict=True) if columns else iter([()] * count)


def explain(raw: RawRows, numbers: NumberFormat) -> Iterator[ColumnReading]:
    """How each metric column was understood, by the first cell that holds something."""
    for position, (i, name) in enumerate(raw.metrics):
        unit = _unit(raw, position, name)
        example = next((row[i] for row in raw.rows if row[i].strip()), "")
        printed = "" if raw.units is None else raw.units[position]
        form = _format(raw, position, numbers)
        value = None
        if unit is not None:
            value = measured(column_values([example], unit.exponent, form)[0], unit)
        note = "no unit is stated: a scaled number cannot be read" if unit is None else None
        if isinstance(value, Absent):
            note = value.value
        elif isinstance(value, Instanced):
            note = f"{len(value.instances)} instances"
            value = value.aggregate
        yield ColumnReading(
            column=name,
            metric=name,
            unit=printed,
            base_unit="" if unit is None else unit.base,
            factor=1.0 if unit is None else float(f"1e{unit.exponent}"),
            example=example[:60],
            value=None if isinstance(value, Absent) else value,
            note=note,
        )
