"""Speeds of light in words: the percentage, its ceiling, its clock, and why it passes 100 %."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from solscope.model.report import Device
from solscope.model.roofline import Chip, Standing
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import ABSENT, clean

_OVER = 1.0005  # what is shown as more than 100.0 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A shown number and the raw number to sort by (``None`` sorts last).

    ``note`` says what it is of; ``over`` why it passes 100 %.
    """

    text: str
    raw: float | None = None
    note: str = ""
    over: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """A speed of light: the percentage, what it is a percentage of, and at which clock."""

    cell: Cell
    resource: str = ""
    achieved: str = ""
    peak: str = ""
    ceiling: str = ""
    clock: str = ""
    at: str = ""

    @property
    def over(self) -> str:
        """Why it passes 100 %; empty where it does not."""
        return self.cell.over

    @property
    def basis(self) -> str:
        """One line that names the ceiling and its clock."""
        if not self.ceiling:
            return ""
        if not self.peak:
            return f"{self.achieved}; the percentage is {self.ceiling}, not counted work"
        clock = f"at {self.clock}" if self.clock else "clock not stated"
        return f"{self.achieved} of {self.peak}: {self.ceiling}, {clock}"


def clock_bases(chip: Chip | None) -> Mapping[str, str]:
    """By ceiling key, what its table says of a clock that it gives no number for."""
    if chip is None:
        return {}
    return {c.key: clean(c.clock_basis) for c in chip.ceilings.values() if c.clock_basis}


def binding(
    standing: Standing | None, device: Device, clock: float | None, stated: Mapping[str, str]
) -> Speed:
    if standing is None:
        return Speed(cell=Cell(text=ABSENT))
    return speed(standing, device, clock, stated)


def speed(
    standing: Standing,
    device: Device,
    sm_clock_hz: float | None,
    stated: Mapping[str, str],
    *,
    at: str = "",
) -> Speed:
    """Word one standing, with the reason where it passes 100 %."""
    unit = f"{bounds.unit(standing.resource)}/s"
    over = over_reason(standing, device, sm_clock_hz) if standing.value > _OVER else ""
    worded = Speed(
        cell=Cell(text=numbers.fraction(standing.value), raw=standing.value, over=over),
        resource=bounds.label(standing.resource),
        achieved=numbers.amount(standing.achieved, unit),
        # L2 has no single peak for both directions: its standing is a busy percentage of ncu's.
        peak="" if standing.resource == "l2" else numbers.amount(standing.peak, unit),
        ceiling=clean(standing.ceiling),
        clock=clock_text(standing, stated),
        at=at,
    )
    return dataclasses.replace(worded, cell=dataclasses.replace(worded.cell, note=worded.basis))


def clock_text(standing: Standing, stated: Mapping[str, str]) -> str:
    """The clock of a standing's ceiling: its rate, else how its table words it, else empty."""
    if standing.clock_hz is not None:
        return numbers.clock(standing.clock_hz)
    return stated.get(standing.ceiling, "")


def over_reason(standing: Standing, device: Device, sm_clock_hz: float | None) -> str:
    """Why a share above 100 % is possible, with the clocks and the ceiling."""
    is_memory = standing.resource in {"dram", "l2"}
    clock = standing.clock_hz
    if not is_memory and clock is not None and sm_clock_hz is not None and sm_clock_hz > clock:
        return (
            f"{standing.ceiling} is quoted at {numbers.clock(clock)}; the profile ran at "
            f"{numbers.clock(sm_clock_hz)}"
        )
    attributes = device.dram_bytes_per_s
    if (
        standing.resource == "dram"
        and attributes is not None
        and attributes > 1.005 * standing.peak
    ):
        return (
            f"the device's memory clock and bus width give {numbers.amount(attributes, 'B/s')}, "
            f"more than {standing.ceiling} ({numbers.amount(standing.peak, 'B/s')})"
        )
    at = f" at {numbers.clock(clock)}" if clock is not None else " (clock not stated)"
    return (
        f"work and time come from different replay passes, whose clocks differ from that of "
        f"{standing.ceiling}{at}"
    )
