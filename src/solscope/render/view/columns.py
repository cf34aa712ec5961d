"""Which columns a table of kernels has: those that have something to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solscope.render.view.rows import Row
from solscope.render.view.speeds import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; ``key`` is the row's field, ``short`` the head where room is scarce."""

    key: str
    title: str
    short: str
    meaning: str
    is_number: bool = True
    is_gauge: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether it is a stand-in where no work was counted."""
        return self.key in _BUSY


_ALWAYS = {"time", "share", "bound_label"}
_BUSY = {"sm_busy", "dram_busy", "tensor_pipe", "limiter"}

COLUMNS: Sequence[Column] = (
    Column(key="gpu", title="GPU", short="GPU", meaning="ordinal of the device that ran it"),
    Column(key="process", title="process", short="process", meaning="process that launched it"),
    Column(key="time", title="time", short="time", meaning="all launches together"),
    Column(key="share", title="share", short="time\n%", meaning="of the time of all kernels"),
    Column(
        key="bound_label",
        title="bound by",
        short="bound by",
        meaning="what binds the kernel",
        is_number=False,
    ),
    Column(
        key="profiled",
        title="SoL, profile",
        short="SoL %\nprofile",
        meaning="achieved over the nearest counted roof, at the clock of the profile",
        is_gauge=True,
    ),
    Column(
        key="sheet",
        title="SoL, sheet",
        short="SoL %\nsheet",
        meaning="the same against the data sheet",
        is_gauge=True,
    ),
    Column(
        key="intensity", title="intensity", short="FLOP/B", meaning="FLOP per byte of DRAM traffic"
    ),
    Column(key="flop_rate", title="rate", short="FLOP/s", meaning="counted work over time"),
    Column(key="dram_rate", title="DRAM", short="DRAM\nB/s", meaning="DRAM traffic over time"),
    Column(
        key="sm_busy",
        title="SM busy",
        short="SM\n%",
        meaning="ncu's percent of peak at the clock of the profile; not counted work",
    ),
    Column(
        key="dram_busy",
        title="DRAM busy",
        short="DRAM\n%",
        meaning="ncu's percent of peak at the clock of the profile; not counted bytes",
    ),
    Column(
        key="tensor_pipe",
        title="tensor pipe",
        short="tens.\n%",
        meaning="ncu's percent of cycles in which the tensor pipe was active",
    ),
    Column(key="occupancy", title="occupancy", short="occ.\n%", meaning="achieved, of the most"),
    Column(
        key="limiter",
        title="limited by",
        short="limited\nby",
        meaning="what limits the blocks on an SM",
        is_number=False,
    ),
)


def chosen(rows: Sequence[Row], *, is_narrow: bool = False) -> tuple[Column, ...]:
    """The columns that hold anything. Busy percentages only where some speed of light is
    missing: beside counted work they would pass for it. ``is_narrow`` pages have them only
    where all are missing."""
    missing = [row.profiled.cell.raw is None for row in rows]
    wants_busy = all(missing) if is_narrow else any(missing)
    return tuple(
        column
        for column in COLUMNS
        if column.key in _ALWAYS
        or (
            (wants_busy or column.key not in _BUSY)
            and any(cell(row, column).text not in {"–", ""} for row in rows)
        )
    )


def cell(row: Row, column: Column) -> Cell:
    """What a row shows in a column."""
    if column.key in {"profiled", "sheet"}:
        return row.profiled.cell if column.key == "profiled" else row.sheet.cell
    value = getattr(row, column.key)
    return value if isinstance(value, Cell) else Cell(text=value)
