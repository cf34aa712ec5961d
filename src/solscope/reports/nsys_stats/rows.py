"""Rows of printed tables as numbers with units: never a number whose unit is not stated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from solscope.errors import ReportError, UnknownUnit
from solscope.model import trace
from solscope.model.report import Dim3
from solscope.model.trace import CallTotal, KernelTime
from solscope.reports.nsys_stats.tables import StatsTable
from solscope.reports.printed.number_format import NumberFormat, detect, of_locale

if TYPE_CHECKING:
    import pyarrow as pa

TIME_NS = {
    "ns": 1.0,
    "nsec": 1.0,
    "us": 1e3,
    "usec": 1e3,
    "µs": 1e3,
    "μs": 1e3,
    "ms": 1e6,
    "msec": 1e6,
    "s": 1e9,
    "sec": 1e9,
}
BYTES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024.0, "mib": 2.0**20, "gib": 2.0**30}

_WITH_UNIT = re.compile(r"([+-]?\d[\d.,]*)\s*([nuµμm]?s|[num]?sec)")  # 1.234 ms
_PLAIN = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_POINT_GROUPED = re.compile(r"[+-]?\d{1,3}\.\d{3}")
_CUT = ("\u2026", "...")
_BATCH_ROWS = 1 << 16
_WHOLE = ("total", "min", "max", "start", "duration")
_TEXTS = frozenset({"name", "category", "device", "grid", "block"})
_DEVICE = re.compile(r"^(.*?)\s*\((\d+)\)$")
_MEMORY_OPERATION = re.compile(r"^\[CUDA (memcpy|memset|Unified Memory.*?)\s*([^\]]*)\]$")
_DIRECTION = re.compile(r"\b(Host|Device|Peer|Array)-to-(Host|Device|Peer|Array)\b")


class Cells:
    """Typed access to one table's cells. ``locale`` is that of whatever wrote the numbers.

    Raises ReportError where the numbers of a table that a spreadsheet saved can be read two ways.
    """

    def __init__(self, table: StatsTable, path: str, locale: str | None = None) -> None:
        self.table = table
        self._path = path
        self._at = {role: table.where(role) for role in _ROLES}
        self._time_factor = self._factors()
        self.numbers = self._number_format(locale)
        self._whole = frozenset(
            role for role, factor in self._time_factor.items() if factor == 1 and role in _WHOLE
        ) | {"count"}

    def _number_format(self, locale: str | None) -> NumberFormat | None:
        """Spreadsheets write by their locale, nsys itself always with commas between thousands;
        ``None`` for the latter."""
        if locale is not None:
            return of_locale(locale)
        if self.table.delimiter in (",", None):
            return None
        columns = [at for role, at in self._at.items() if at is not None and role not in _TEXTS]
        texts = (row[at].strip() for row in self.table.rows for at in columns if at < len(row))
        return detect(texts, where=self._path)

    def _factors(self) -> dict[str, float | None]:
        """Time unit by column. Up to 2020 only the total states one; it holds for the row."""
        found: dict[str, float | None] = {}
        for role in ("total", "mean", "median", "min", "max", "start", "duration"):
            if self.table.where(role) is not None:
                unit = self.time_unit(role)
                found[role] = None if unit is None else self._factor(unit, TIME_NS)
        return found

    def _factor(self, unit: str, known: dict[str, float]) -> float:
        try:
            return known[unit.lower()]
        except KeyError:
            raise UnknownUnit(
                f"no factor for the unit {unit!r} in the header of line {self.table.line}",
                where=self._path,
                hint="run `nsys stats` with --timeunit nsec",
            ) from None

    def time_unit(self, role: str) -> str | None:
        """The unit of a time column: its own, else that of the total (exports up to 2020)."""
        columns = {c.role: c.unit for c in self.table.columns if c is not None}
        return columns.get(role) or columns.get("total")

    @property
    def has_unit(self) -> bool:
        """Whether the times of this table have a stated unit."""
        first = next(self.rows(), ())
        return all(
            factor is not None or _WITH_UNIT.fullmatch(self.text(first, role)) is not None
            for role, factor in self._time_factor.items()
        )

    def text(self, row: tuple[str, ...], role: str) -> str:
        """A cell as text, empty where the table has no such column."""
        at = self._at.get(role)
        return row[at].strip() if at is not None and at < len(row) else ""

    def number(self, row: tuple[str, ...], role: str) -> float | None:
        """A cell as a number, ``None`` where it is empty. Raises ReportError for other text."""
        text = self.text(row, role)
        return self._number(text.removesuffix("%") if role == "share" else text, role)

    def _number(self, text: str, role: str) -> float | None:
        text = text.strip()
        if text.isascii() and text.isdigit():
            return int(text)
        if text in ("", "-", "N/A", "n/a"):
            return None
        if self.numbers is not None:
            text = self.numbers.plain(text)
        elif _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        elif role in self._whole and _POINT_GROUPED.fullmatch(text):
            raise ReportError(
                f"{text!r} in column {role} of the table at line {self.table.line}: nsys prints "
                "whole numbers there, so that this may be thousands",
                where=self._path,
                hint="give the locale that wrote it: --locale C, --locale de_DE ...",
            )
        value = float(text) if _PLAIN.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise ReportError(
                f"{text[:40]!r} in column {role} of the table at line {self.table.line} "
                "is no number",
                where=self._path,
                hint="export with `nsys stats --format csv` under LC_ALL=C, or give the --locale "
                "of what wrote it",
            )
        return value

    def integer(self, row: tuple[str, ...], role: str) -> int | None:
        """A whole number."""
        number = self.number(row, role)
        return None if number is None else int(number)

    def nanoseconds(self, row: tuple[str, ...], role: str) -> float | None:
        """A time; ``None`` where no unit is stated, in the header or (as by nsys's window) in the
        cell."""
        stated = _WITH_UNIT.fullmatch(self.text(row, role))
        if stated is not None:
            number = self._number(stated[1], role)
            return None if number is None else number * self._factor(stated[2], TIME_NS)
        factor = self._time_factor.get(role)
        number = None if factor is None else self.number(row, role)
        if number is None or factor is None:
            return None
        return number if factor == 1 else number * factor  # whole nanoseconds stay exact

    def bytes(self, row: tuple[str, ...]) -> int | None:
        """A size in bytes, to the digits printed; ``None`` where no unit is stated."""
        unit = next((c.unit for c in self.table.columns if c and c.role == "bytes"), None)
        number = None if unit is None else self.number(row, "bytes")
        return None if number is None or unit is None else round(number * self._factor(unit, BYTES))

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The rows that are as long as the header."""
        width = len(self.table.header)
        for row in self.table.rows:
            if len(row) == width:
                yield row


def count_cut_names(table: StatsTable) -> int:
    """How many names end in the mark of what did not fit the table's width."""
    at = table.where("name")
    if at is None:
        return 0
    names = (row[at].rstrip() for row in table.rows if at < len(row))
    return sum(name.endswith(_CUT) for name in names)


def ragged(table: StatsTable) -> int:
    """How many rows are not as long as the header."""
    return sum(len(row) != len(table.header) for row in table.rows)


_ROLES = (
    *("share", "total", "count", "mean", "median", "min", "max", "name", "category", "grid"),
    *("block", "start", "duration", "correlation", "grid_x", "grid_y", "grid_z", "block_x"),
    *("block_y", "block_z", "bytes", "device", "stream"),
)


def kernel_times(cells: Cells, short: Callable[[str], str]) -> Iterator[KernelTime]:
    """The rows of a kernel summary."""
    for row in cells.rows():
        if cells.table.kind == "gpu" and cells.text(row, "category") != "CUDA_KERNEL":
            continue
        name = cells.text(row, "name")
        share = cells.number(row, "share")
        yield KernelTime(
            name=short(name),
            name_full=name,
            launches=cells.integer(row, "count"),
            total_ns=_float(cells.nanoseconds(row, "total")),
            mean_ns=_float(cells.nanoseconds(row, "mean")),
            median_ns=_float(cells.nanoseconds(row, "median")),
            min_ns=_float(cells.nanoseconds(row, "min")),
            max_ns=_float(cells.nanoseconds(row, "max")),
            time_share=None if share is None else share / 100,
            grid=_dim3(cells.text(row, "grid")),
            block=_dim3(cells.text(row, "block")),
        )


def _float(number: float | None) -> float | None:
    return None if number is None else float(number)


def calls(cells: Cells) -> Iterator[CallTotal]:
    """The rows of an API summary."""
    for row in cells.rows():
        count = cells.integer(row, "count")
        if count is not None:
            yield CallTotal(
                name=cells.text(row, "name"),
                calls=count,
                total_ns=_float(cells.nanoseconds(row, "total")),
            )


def timeline(cells: Cells, short: Callable[[str], str]) -> tuple[pa.Table, pa.Table, int]:
    """A GPU trace as tables of kernels and of copies, and how many rows have no time that can be
    used."""
    if not cells.has_unit:
        raise ReportError(
            f"the trace at line {cells.table.line} states no unit of time",
            hint="run `nsys stats` with --timeunit nsec",
        )
    device_of = lru_cache(maxsize=1024)(_DEVICE.match)
    kernels, copies = _Events("kernels", cells), _Events("copies", cells)
    unusable = 0
    for row in cells.rows():
        start = cells.nanoseconds(row, "start")
        spent = cells.nanoseconds(row, "duration")
        if start is None or spent is None or spent < 0:
            unusable += 1
            continue
        device = device_of(cells.text(row, "device"))
        event = {
            "start_ns": round(start),
            "end_ns": round(start) + round(spent),
            "device": int(device[2]) if device else None,
            "stream": cells.integer(row, "stream"),
            "process": None,
            "correlation": cells.integer(row, "correlation"),
        }
        name = cells.text(row, "name")
        memory = _MEMORY_OPERATION.match(name)
        if memory:
            copies.add(event | {"kind": _copy_kind(memory), "bytes": cells.bytes(row)})
        else:
            kernels.add(event | _shape(cells, row) | {"name": name, "short_name": short(name)})
    return kernels.table(), copies.table(), unusable


class _Events:
    """Events that become arrow columns a batch at a time: a trace may have millions."""

    def __init__(self, target: str, cells: Cells) -> None:
        self._schema = trace.schemas()[target]
        self._line = cells.table.line
        self._rows: list[dict[str, Any]] = []
        self._parts: list[pa.Table] = [self._schema.empty_table()]

    def add(self, event: dict[str, Any]) -> None:
        """One event, by the names of the schema's columns."""
        self._rows.append(event)
        if len(self._rows) == _BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        try:
            self._parts.append(pa.Table.from_pylist(self._rows, self._schema))
        except (pa.ArrowInvalid, OverflowError) as error:
            raise ReportError(
                f"the trace at line {self._line} holds a number out of range"
            ) from error
        self._rows.clear()

    def table(self) -> pa.Table:
        """All of it, each name once."""
        import pyarrow as pa

        self._flush()
        return pa.concat_tables(self._parts).unify_dictionaries().combine_chunks()


def device_names(cells: Cells) -> dict[int, str]:
    """Devices by number, from cells such as ``NVIDIA B200 (0)``."""
    found = {}
    for row in cells.rows():
        match = _DEVICE.match(cells.text(row, "device"))
        if match:
            found[int(match[2])] = match[1]
    return found


def _copy_kind(memory: re.Match[str]) -> str:
    if memory[1] == "memset":
        return "Memset"
    direction = _DIRECTION.search(memory[2])
    return f"{direction[1][0]}to{direction[2][0]}" if direction else memory[2].strip("() ")


def _shape(cells: Cells, row: tuple[str, ...]) -> dict[str, int | None]:
    shape: dict[str, int | None] = {"graph_node": None}
    for what in ("grid", "block"):
        text = cells.text(row, what)
        whole = _dim3(text) if text else None
        for index, axis in enumerate("xyz"):
            name = f"{what}_{axis}"
            shape[name] = whole[index] if whole else cells.integer(row, name)
    return shape


def _dim3(text: str) -> Dim3 | None:
    """``128    1    1`` and ``128x1x1``."""
    parts = re.findall(r"\d+", text)
    return (int(parts[0]), int(parts[1]), int(parts[2])) if len(parts) == 3 else None
