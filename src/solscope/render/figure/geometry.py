"""Where things stand on a log-log plane, in pixels: axes, roofs, strips and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 620, 420
STRIP = 58  # width of a margin strip for points without an intensity
CHARACTER = 5.9  # mean width of a character at 11 px, in pixels, on the generous side
LINE = 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Limits of both axes (FLOP/byte and FLOP/s) and their pixels; y grows downwards."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        """Pixels from the left edge."""
        return WIDTH * _between(value, self.x_low, self.x_high)

    def y(self, value: float) -> float:
        """Pixels from the top edge."""
        return HEIGHT * (1 - _between(value, self.y_low, self.y_high))

    def value_at_y(self, pixels: float) -> float:
        """The FLOP/s at a height."""
        ratio = 1 - pixels / HEIGHT
        return float(self.y_low * (self.y_high / self.y_low) ** ratio)

    def value_at_x(self, pixels: float) -> float:
        """The intensity at a distance from the left edge."""
        return float(self.x_low * (self.x_high / self.x_low) ** (pixels / WIDTH))

    @property
    def slope_degrees(self) -> float:
        """The angle of a bandwidth line on the page, negative as it rises."""
        dx = WIDTH / math.log10(self.x_high / self.x_low)
        dy = HEIGHT / math.log10(self.y_high / self.y_low)
        return -math.degrees(math.atan2(dy, dx))


def _between(value: float, low: float, high: float) -> float:
    return math.log10(value / low) / math.log10(high / low)


def decade_below(value: float) -> float:
    """The power of ten at or below a positive number.

    >>> decade_below(0.02), decade_below(10)
    (0.01, 10.0)
    """
    return float(10.0 ** math.floor(math.log10(value) + 1e-9))


def decade_above(value: float) -> float:
    """The power of ten at or above a positive number.

    >>> decade_above(295.0)
    1000.0
    """
    return float(10.0 ** math.ceil(math.log10(value) - 1e-9))


def decades(low: float, high: float) -> list[float]:
    """The powers of ten within an axis.

    >>> decades(0.1, 250.0)
    [0.1, 1.0, 10.0, 100.0]
    """
    first = math.ceil(math.log10(low) - 1e-9)
    last = math.floor(math.log10(high) + 1e-9)
    return [float(f"1e{power}") for power in range(first, last + 1)]


def plane(
    intensities: Iterable[float], rates: Iterable[float], ridges: Iterable[float], top: float
) -> Plane:
    """Axes that hold every point, every ridge point and the highest roof."""
    xs = [x for x in (*intensities, *ridges) if x > 0]
    ys = [y for y in rates if y > 0]
    x_low = decade_below(min([0.1, *(x * 0.8 for x in xs)]))
    x_high = decade_above(max([100.0, *(x * 1.8 for x in xs)]))
    highest = max([*ys, top])
    y_low = decade_below(min([highest / 3e3, *(y * 0.6 for y in ys)]))
    return Plane(x_low=x_low, x_high=x_high, y_low=y_low, y_high=highest * 2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two share any pixel."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def around(x: float, y: float, radius: float) -> Box:
    """The square around a marker."""
    return Box(left=x - radius, top=y - radius, right=x + radius, bottom=y + radius)


def along(x: float, y: float, degrees: float, size: tuple[float, float], up: float) -> list[Box]:
    """Boxes that cover a text block (length, depth) which ends at (x, y), ``up`` above its line.

    ``degrees`` is the angle of the line, negative as it rises to the right.
    """
    angle = math.radians(degrees)
    length, depth = size
    step = 8.0
    boxes = []
    for i in range(int(length / step) + 1):
        back = i * step
        for part in (0.25, 0.75):
            rise = up + depth * part
            cx = x - back * math.cos(angle) + rise * math.sin(angle)
            cy = y - back * math.sin(angle) - rise * math.cos(angle)
            boxes.append(around(cx, cy, depth * 0.3))
    return boxes


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres near the wanted ones (sorted downwards) whose extents do not overlap.

    >>> spread([10.0, 12.0], [10.0, 10.0], 0.0, 100.0)
    [10.0, 20.0]
    """
    placed: list[float] = []
    edge = low
    for centre, size in zip(wanted, sizes, strict=True):
        top = max(centre - size / 2, edge)
        placed.append(top + size / 2)
        edge = top + size
    floor = high
    for i in range(len(placed) - 1, -1, -1):
        bottom = min(placed[i] + sizes[i] / 2, floor)
        placed[i] = bottom - sizes[i] / 2
        floor = bottom - sizes[i]
    return placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A text's place: its anchor, and how it is aligned to it."""

    x: float
    y: float
    align: str
    box: Box


def candidates(x: float, y: float, radius: float, length: float) -> list[Spot]:
    """Places for a label beside a marker, best first."""
    gap = radius + 4
    half = LINE / 2
    diagonal = radius * 0.75 + 2
    places = (
        (x + gap, y, "left"),
        (x - gap, y, "right"),
        (x, y + gap + half, "center"),
        (x, y - gap - half, "center"),
        (x - radius, y + gap + half, "left"),
        (x + diagonal, y + diagonal + half, "left"),
        (x - diagonal, y + diagonal + half, "right"),
        (x + diagonal, y - diagonal - half, "left"),
        (x - diagonal, y - diagonal - half, "right"),
        (x - radius, y - gap - half, "left"),
        (x, y + 1.5 * LINE + gap, "center"),
        (x + gap, y + 1.5 * LINE + gap, "left"),
        (x - gap, y + 1.5 * LINE + gap, "right"),
    )
    spots = []
    for px, py, align in places:
        left = {"left": px, "right": px - length, "center": px - length / 2}[align]
        box = Box(left=left - 1, top=py - half, right=left + length + 1, bottom=py + half)
        spots.append(Spot(x=px, y=py, align=align, box=box))
    return spots
