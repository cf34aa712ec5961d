"""A panel laid out: every line, marker and label with its place."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from solscope.render.figure.geometry import (
    CHARACTER,
    HEIGHT,
    LINE,
    STRIP,
    WIDTH,
    Box,
    Plane,
    along,
    around,
    candidates,
    plane,
    spread,
)
from solscope.render.figure.panels import PROFILE, SHEET, Panel, Roof
from solscope.render.view import numbers
from solscope.render.view.rows import Row

NAME_LENGTH, SHORT_NAME = 30, 18
ROOF_TEXT = 42  # characters on a line of a roof's label
MOST_NAMES = 16
MOST_LABELS = 60  # kernels that get a name or a rank; the table numbers them all
MOST_NOTED = 12
_SHORT = {PROFILE: "profile", SHEET: "data sheet"}
LEAST_RADIUS, MOST_RADIUS = 4.5, 17.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A roof from one point to another, in the units of the axes."""

    roof: Roof
    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofLabel:
    """A roof's label right of the plot: the height of its roof, and its own, in pixels."""

    roof: Roof
    source: str
    lines: int
    roof_y: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeLabel:
    """A bandwidth roof's label along its line; it ends at (x, y) and lies ``up`` above it."""

    text: str
    kind: str
    x: float
    y: float
    up: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A kernel on the plane, in pixels. ``where`` is plane, unmeasured or resident."""

    row: Row
    where: str
    x: float
    y: float
    radius: float

    @property
    def is_hollow(self) -> bool:
        """Whether its intensity is unmeasured."""
        return self.where == "unmeasured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text beside or inside a marker."""

    text: str
    x: float
    y: float
    align: str
    is_inside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything drawn for one panel."""

    panel: Panel
    plane: Plane
    lines: tuple[Line, ...]
    roof_labels: tuple[RoofLabel, ...]
    slope_labels: tuple[SlopeLabel, ...]
    markers: tuple[Marker, ...]
    labels: tuple[Label, ...]
    has_unmeasured_strip: bool
    has_resident_strip: bool
    notes: tuple[str, ...]

    @property
    def left(self) -> float:
        """Where the y axis stands, in pixels from the plane's left edge."""
        return -STRIP if self.has_unmeasured_strip else 0.0

    @property
    def right(self) -> float:
        """Where the roofs end."""
        return WIDTH + (STRIP if self.has_resident_strip else 0.0)


def lay_out(panel: Panel) -> Scene:
    """Place everything of a panel."""
    on_plane = _plane(panel)
    markers = tuple(_markers(panel, on_plane))
    has_resident = any(m.where == "resident" for m in markers)
    has_unmeasured = any(m.where == "unmeasured" for m in markers)
    slope_labels, taken = _slope_labels(panel, on_plane, markers)
    left = -STRIP if has_unmeasured else 0
    right = WIDTH + (STRIP if has_resident else 0)
    room = _Room(
        solid=list(taken), lines=list(_along_roofs(panel, on_plane)), left=left, right=right
    )
    return Scene(
        panel=panel,
        plane=on_plane,
        lines=tuple(_lines(panel, on_plane)),
        roof_labels=tuple(_roof_labels(panel, on_plane)),
        slope_labels=slope_labels,
        markers=markers,
        labels=tuple(_labels(markers, room)),
        has_unmeasured_strip=has_unmeasured,
        has_resident_strip=has_resident,
        notes=tuple(_notes(panel)),
    )


def _plane(panel: Panel) -> Plane:
    points = [kernel.point for _row, kernel in panel.members]
    compute = [r.peak for r in panel.roofs if not r.is_memory]
    memory = [r.peak for r in panel.roofs if r.is_memory]
    ridges = [peak / bandwidth for peak in compute for bandwidth in memory]
    top = max(compute, default=0.0) or max((50.0 * b for b in memory), default=1e12)
    return plane(
        [p.intensity for p in points if p.intensity and p.flop_per_s],
        [p.flop_per_s for p in points if p.flop_per_s],
        ridges,
        top,
    )


def _lines(panel: Panel, on: Plane) -> Iterator[Line]:
    anyone = max((r.peak for r in panel.roofs if not r.is_memory), default=on.y_high)
    for roof in panel.roofs:
        kindred = [r.peak for r in panel.roofs if not r.is_memory and r.kind == roof.kind]
        if roof.is_memory:
            end = min(max(kindred, default=anyone) / roof.peak, on.x_high)
            begin = max(on.x_low, on.y_low / roof.peak)
            if begin < end:
                yield Line(roof=roof, x=(begin, end), y=(begin * roof.peak, end * roof.peak))
            continue
        memory = panel.roof_of(roof.kind)
        begin = on.x_low if memory is None else max(on.x_low, roof.peak / memory.peak)
        yield Line(roof=roof, x=(begin, on.x_high), y=(roof.peak, roof.peak))


def _roof_labels(panel: Panel, on: Plane) -> Iterator[RoofLabel]:
    roofs = sorted((r for r in panel.roofs if not r.is_memory), key=lambda r: -r.peak)
    sources = [_wrapped(roof.source) for roof in roofs]
    sizes = [LINE * (1 + len(source)) + 5 for source in sources]
    wanted = [on.y(roof.peak) for roof in roofs]
    centres = spread(wanted, sizes, -30.0, HEIGHT + 20.0)
    for roof, source, at, centre in zip(roofs, sources, wanted, centres, strict=True):
        yield RoofLabel(roof=roof, source="\n".join(source), lines=len(source), roof_y=at, y=centre)


def _wrapped(text: str) -> list[str]:
    """Lines broken after marks of a metric's name, so that it can be read and searched."""
    lines = [""]
    # A clock and its unit, or a range of clocks, stay together.
    joined = re.sub(r"(?<=\d) (?=[A-Zt])|(?<=to) ", "\u00a0", text)
    for piece in re.findall(r".+?(?:_+|\.(?=[a-z])| |$)", joined):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip(" ")) > ROOF_TEXT:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip(" ").replace("\u00a0", " ") for line in lines]


def _slope_labels(
    panel: Panel, on: Plane, markers: Sequence[Marker]
) -> tuple[tuple[SlopeLabel, ...], list[Box]]:
    """Labels of the bandwidth roofs, above the upper line where the fewest markers are."""
    roofs = [r for r in panel.roofs if r.is_memory]
    if not roofs:
        return (), []
    roofs.sort(key=lambda r: r.kind == PROFILE, reverse=True)
    upper = max(roofs, key=lambda r: r.peak)
    texts = [f"{_SHORT[r.kind]}: {r.title} · {r.source}" for r in roofs]
    size = (max(len(text) for text in texts) * CHARACTER * 0.93, LINE * len(roofs))
    obstacles = [around(m.x, m.y, m.radius) for m in markers[:MOST_LABELS]]
    best: tuple[float, float, list[Box], float] | None = None
    for up, x in _slope_places(panel, on, upper, size[0]):
        boxes = along(x, _slope_y(on, upper, x), on.slope_degrees, size, up)
        hits = float(sum(box.overlaps(o) for box in boxes for o in obstacles))
        if best is None or hits < best[3]:
            best = (up, x, boxes, hits)
        if hits == 0:
            break
    if best is None:
        return (), []
    up, x, boxes, _hits = best
    y = _slope_y(on, upper, x)
    labels = tuple(
        SlopeLabel(text=text, kind=roof.kind, x=x, y=y, up=up + LINE * i)
        for i, (roof, text) in enumerate(zip(roofs, texts, strict=True))
    )
    return labels, boxes


def _slope_places(
    panel: Panel, on: Plane, upper: Roof, length: float
) -> Iterator[tuple[float, float]]:
    """(height above the line, where the text ends), best first."""
    kindred = [r.peak for r in panel.roofs if not r.is_memory]
    top = max(kindred, default=on.y_high)
    end = min(on.x(top / upper.peak), WIDTH - 5.0) - 14
    run = length * math.cos(math.radians(on.slope_degrees))
    for up in (5.0, 12.0, 19.0, 26.0):
        for back in range(0, 240, 12):
            if back == 0 or end - back - run > 10:
                yield up, end - back


def _slope_y(on: Plane, roof: Roof, x: float) -> float:
    return on.y(on.value_at_x(x) * roof.peak)


def radius(share: float | None) -> float:
    """Pixels; the area grows with the share of the kernel time."""
    grown = LEAST_RADIUS**2 + (MOST_RADIUS**2 - LEAST_RADIUS**2) * (share or 0.0)
    return math.sqrt(grown)


def _markers(panel: Panel, on: Plane) -> Iterator[Marker]:
    strip_counts = {"unmeasured": 0, "resident": 0}
    for row, kernel in panel.members:
        point = kernel.point
        rate = point.flop_per_s
        if not rate:
            continue
        size = radius(row.share.raw)
        y = on.y(rate)
        if point.intensity:
            yield Marker(row=row, where="plane", x=on.x(point.intensity), y=y, radius=size)
            continue
        where = "resident" if point.is_l2_resident else "unmeasured"
        # Neighbours in a strip stand side by side; across has no meaning there.
        offset = (0, -13, 13)[strip_counts[where] % 3]
        strip_counts[where] += 1
        centre = WIDTH + STRIP / 2 if where == "resident" else -STRIP / 2
        yield Marker(row=row, where=where, x=centre + offset, y=y, radius=min(size, 14.0))


@dataclass(slots=True)
class _Room:
    """What is taken already. Labels may cross a roof, but rather not."""

    solid: list[Box]
    lines: list[Box]
    left: float
    right: float

    def place(self, marker: Marker, text: str, others: Sequence[Box]) -> Label | None:
        """The best free place beside a marker, which is then taken; ``None`` if there is none."""
        spots = [
            spot
            for spot in candidates(marker.x, marker.y, marker.radius, len(text) * CHARACTER)
            if self._is_inside(spot.box)
            and not any(spot.box.overlaps(o) for o in (*self.solid, *others))
        ]
        clear = [s for s in spots if not any(s.box.overlaps(line) for line in self.lines)]
        for spot in (*clear, *spots):
            self.solid.append(spot.box)
            return Label(text=text, x=spot.x, y=spot.y, align=spot.align)
        return None

    def _is_inside(self, box: Box) -> bool:
        return (
            self.left <= box.left
            and box.right <= self.right
            and box.top >= 0
            and box.bottom <= HEIGHT
        )


def _along_roofs(panel: Panel, on: Plane) -> Iterator[Box]:
    for line in _lines(panel, on):
        (x0, x1), (y0, y1) = map(on.x, line.x), map(on.y, line.y)
        steps = max(int((x1 - x0) / 6), 1)
        for i in range(steps + 1):
            yield around(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, 2.0)


def _labels(markers: Sequence[Marker], room: _Room) -> Iterator[Label]:
    """Names by share of time while there is room, then ranks alone, else nothing."""
    boxes = {m.row.rank: around(m.x, m.y, m.radius) for m in markers}
    by_rank = sorted(markers, key=lambda m: m.row.rank)
    for position, marker in enumerate(by_rank[:MOST_LABELS]):
        others = [box for rank, box in boxes.items() if rank != marker.row.rank]
        rank = str(marker.row.rank)
        is_roomy = marker.row.bound_style.shape in {"circle", "square"} and not marker.is_hollow
        is_inside = is_roomy and marker.radius >= 4 + 3.4 * len(rank)
        if is_inside:
            yield Label(text=rank, x=marker.x, y=marker.y, align="center", is_inside=True)
        names = [numbers.shorten(marker.row.name, n) for n in (NAME_LENGTH, SHORT_NAME)]
        texts = names if is_inside else [*(f"{rank} {name}" for name in names), rank]
        if position >= MOST_NAMES:
            texts = texts[2:]
        for text in texts:
            label = room.place(marker, text, others)
            if label is not None:
                yield label
                break


def _notes(panel: Panel) -> Iterator[str]:
    """Kernels that have no place on the plane, and why."""
    unplaced = [row for row, kernel in panel.members if not kernel.point.flop_per_s]
    unplaced += panel.elsewhere
    if not panel.has_points:
        yield "No kernel can be placed: the report holds too few counters. These are its roofs."
    if not panel.roofs:
        yield "No roof is known: neither the report nor a ceilings table gives a peak."
    if unplaced:
        names = [f"{row.rank}\u00a0{numbers.shorten(row.name, NAME_LENGTH)}" for row in unplaced]
        more = f" and {len(names) - MOST_NOTED} more" if len(names) > MOST_NOTED else ""
        why = "no room or FLOP unmeasured" if panel.is_last_of_more else "FLOP unmeasured or none"
        text = f"Not drawn, {why}: {', '.join(names[:MOST_NOTED])}{more}"
        for line in textwrap.wrap(text, 135, break_on_hyphens=False):
            yield line.replace("\u00a0", " ")
