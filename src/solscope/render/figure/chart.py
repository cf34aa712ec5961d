"""The one chart definition: a scene as an Altair chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from solscope.render.figure.geometry import HEIGHT, LINE, STRIP, WIDTH, decades
from solscope.render.figure.panels import PROFILE, SHEET
from solscope.render.figure.scene import Marker, Scene
from solscope.render.view import bounds
from solscope.render.view.rows import Row

_DASH = {PROFILE: [1, 0], SHEET: [6, 4]}


def chart(scene: Scene) -> alt.LayerChart:
    """One roofline."""
    layers = [
        *_strips(scene),
        _roofs(scene),
        *_roof_labels(scene),
        *_slope_labels(scene),
        *_markers(scene),
        *_labels(scene),
        *_notes(scene),
    ]
    layered: alt.LayerChart = (
        alt.layer(*layers)
        .properties(
            width=WIDTH,
            height=HEIGHT,
            title=alt.TitleParams(
                text=scene.panel.title,
                subtitle=list(scene.panel.subtitle),
                anchor="start",
                frame="bounds",
            ),
        )
        .resolve_scale(strokeDash="independent")
    )
    return layered


def _data(values: Iterable[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(values))


def _x(scene: Scene, field: str = "x") -> alt.X:
    on = scene.plane
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=[on.x_low, on.x_high], nice=False),
        axis=alt.Axis(
            title="arithmetic intensity, FLOP per DRAM byte",
            labelExpr="format(datum.value, datum.value < 1e6 ? ',~g' : '~s')",
            values=decades(on.x_low, on.x_high),
        ),
    )


def _y(scene: Scene, field: str = "y") -> alt.Y:
    on = scene.plane
    unit = "FLOP/s (integer tensor work: OP/s)" if scene.panel.has_integer_work else "FLOP/s"
    return alt.Y(
        f"{field}:Q",
        scale=alt.Scale(type="log", domain=[on.y_low, on.y_high], nice=False),
        axis=alt.Axis(
            title=unit,
            labelExpr="format(datum.value, '~s')",
            values=decades(on.y_low, on.y_high),
            offset=-scene.left,
        ),
    )


def _strips(scene: Scene) -> Iterable[alt.Chart]:
    strips = []
    if scene.has_unmeasured_strip:
        strips.append((-STRIP, scene.panel.strip))
    if scene.has_resident_strip:
        strips.append((WIDTH, "L2-resident: no DRAM intensity"))
    for left, text in strips:
        base = alt.Chart(_data([{}]))
        yield base.mark_rect(style="strip").encode(
            x=alt.value(left + 2),
            x2=alt.value(left + STRIP - 2),
            y=alt.value(0),
            y2=alt.value(HEIGHT),
        )
        yield base.mark_text(
            style="strip-title", angle=270, align="left", baseline="middle", text=text
        ).encode(
            x=alt.value(left + STRIP / 2),
            y=alt.value(HEIGHT - 8),
        )


def _roofs(scene: Scene) -> alt.Chart:
    rows = [
        {
            "roof": index,
            "clock": line.roof.kind,
            "x": x,
            "y": y,
            "title": line.roof.title,
            "source": line.roof.source,
        }
        for index, line in enumerate(scene.lines)
        for x, y in zip(line.x, line.y, strict=True)
    ]
    kinds = [kind for kind in (PROFILE, SHEET) if any(r["clock"] == kind for r in rows)]
    roofs: alt.Chart = (
        alt.Chart(_data(rows))
        .mark_line(style="roof", clip=False)
        .encode(x=_x(scene), y=_y(scene), detail="roof:N")
    )
    # Without a roof the axes stay; a legend of nothing has no size, and the chart with it.
    return roofs if not kinds else _dashed(roofs, kinds)


def _dashed(roofs: alt.Chart, kinds: Sequence[str]) -> alt.Chart:
    dashed: alt.Chart = roofs.encode(
        strokeDash=alt.StrokeDash(
            "clock:N",
            title="roofs at the",
            scale=alt.Scale(domain=kinds, range=[_DASH[kind] for kind in kinds]),
            legend=alt.Legend(orient="top", direction="horizontal", symbolSize=260),
        ),
        tooltip=[
            alt.Tooltip("title:N", title="roof"),
            alt.Tooltip("source:N", title="from"),
            alt.Tooltip("clock:N", title="at the"),
        ],
    )
    return dashed


def _roof_labels(scene: Scene) -> Iterable[alt.Chart]:
    if not scene.roof_labels:
        return
    on, right = scene.plane, scene.right
    rows = [
        {
            "roof_y": on.value_at_y(label.roof_y),
            "y": on.value_at_y(label.y),
            "title_y": on.value_at_y(label.y - LINE * label.lines / 2),
            "source_y": on.value_at_y(label.y - LINE * label.lines / 2 + LINE),
            "title": f"{label.roof.title} · {label.roof.kind}",
            "source": label.source,
        }
        for label in scene.roof_labels
    ]
    base = alt.Chart(_data(rows))
    if scene.has_resident_strip:
        yield base.mark_rule(style="leader").encode(
            x=alt.value(WIDTH), x2=alt.value(right), y=_y(scene, "roof_y")
        )
    yield base.mark_rule(style="leader").encode(
        x=alt.value(right + 1), x2=alt.value(right + 14), y=_y(scene, "roof_y"), y2="y:Q"
    )
    yield base.mark_text(style="roof-title", align="left", baseline="middle").encode(
        x=alt.value(right + 18), y=_y(scene, "title_y"), text="title:N"
    )
    yield base.mark_text(
        style="roof-source", align="left", baseline="middle", lineBreak="\n", lineHeight=LINE
    ).encode(x=alt.value(right + 18), y=_y(scene, "source_y"), text="source:N")


def _slope_labels(scene: Scene) -> Iterable[alt.Chart]:
    for label in scene.slope_labels:
        yield (
            alt.Chart(_data([{"text": label.text}]))
            .mark_text(
                style="slope",
                align="right",
                baseline="bottom",
                angle=scene.plane.slope_degrees % 360,
                dy=-label.up + 4,
            )
            .encode(x=alt.value(label.x), y=alt.value(label.y), text="text:N")
        )


def _hover(row: Row) -> dict[str, Any]:
    """What the pointer shows: full names and every number with its unit."""
    return {
        "kernel": row.name,
        "full name": row.name_full,
        "launch": f"{row.shape} · {row.launches_text}",
        "time": f"{row.time} ({row.share})",
        "bound by": row.bound_label,
        "SoL, profile": f"{row.profiled.cell} {_of(row.profiled.basis)}".rstrip(),
        "SoL, data sheet": f"{row.sheet.cell} {_of(row.sheet.basis)}".rstrip(),
        "intensity": str(row.intensity),
        "rate": str(row.flop_rate),
        "DRAM": str(row.dram_rate),
        "occupancy": str(row.occupancy),
    }


def _of(basis: str) -> str:
    return f"({basis})" if basis else ""


def _marker(scene: Scene, marker: Marker) -> dict[str, Any]:
    return {
        **_hover(marker.row),
        "rank": marker.row.rank,
        "bound": marker.row.bound_style.label,
        "where": marker.where,
        "x": scene.plane.value_at_x(marker.x),
        "y": scene.plane.value_at_y(marker.y),
        "size": (2 * marker.radius) ** 2,
    }


def _markers(scene: Scene) -> Iterable[alt.Chart]:
    if not scene.markers:
        return
    rows = [_marker(scene, marker) for marker in scene.markers]
    # The longest kernels first, so that small markers stay in sight on top of large ones.
    rows.sort(key=lambda r: r["rank"])
    present = {row["bound"] for row in rows}
    styles = [s for s in bounds.STYLES.values() if s.label in present]
    tooltip = [alt.Tooltip(f"{name}:N") for name in _hover(scene.markers[0].row)]
    yield from (
        _marker_layer(scene, group, styles, tooltip, is_hollow=is_hollow)
        for is_hollow in (False, True)
        if (group := [r for r in rows if (r["where"] == "unmeasured") == is_hollow])
    )


def _marker_layer(
    scene: Scene,
    rows: Sequence[dict[str, Any]],
    styles: Sequence[bounds.BoundStyle],
    tooltip: Sequence[alt.Tooltip],
    *,
    is_hollow: bool,
) -> alt.Chart:
    domain = [style.label for style in styles]
    legend = alt.Legend(
        orient="top",
        direction="horizontal",
        symbolSize=110,
        padding=3,
        symbolStrokeWidth=0,
        values=domain,
    )
    layer: alt.Chart = (
        alt.Chart(_data(rows))
        .mark_point(style="hollow" if is_hollow else "kernel", filled=not is_hollow, clip=False)
        .encode(
            x=_x(scene),
            y=_y(scene),
            size=alt.Size("size:Q", scale=None, legend=None),
            color=alt.Color(
                "bound:N",
                title="bound by",
                scale=alt.Scale(domain=domain, range=[style.colour for style in styles]),
                legend=legend,
            ),
            shape=alt.Shape(
                "bound:N",
                title="bound by",
                scale=alt.Scale(domain=domain, range=[style.shape for style in styles]),
                legend=legend,
            ),
            tooltip=list(tooltip),
        )
    )
    return layer


def _labels(scene: Scene) -> Iterable[alt.Chart]:
    for align in ("left", "right", "center"):
        rows = [
            {
                "text": label.text,
                "px": label.x,
                "py": scene.plane.value_at_y(label.y),
                "x": scene.plane.value_at_x(label.x),
            }
            for label in scene.labels
            if label.align == align and not label.is_inside
        ]
        for style in ("halo", "name") if rows else ():
            yield (
                alt.Chart(_data(rows))
                .mark_text(style=style, align=align, baseline="middle", clip=False)
                .encode(x=_x(scene), y=_y(scene, "py"), text="text:N")
            )
    inside = [
        {
            "text": label.text,
            "x": scene.plane.value_at_x(label.x),
            "y": scene.plane.value_at_y(label.y),
        }
        for label in scene.labels
        if label.is_inside
    ]
    if inside:
        yield (
            alt.Chart(_data(inside))
            .mark_text(style="rank", align="center", baseline="middle")
            .encode(x=_x(scene), y=_y(scene), text="text:N")
        )


def _notes(scene: Scene) -> Iterable[alt.Chart]:
    if scene.notes:
        yield (
            alt.Chart(_data([{"text": "\n".join(scene.notes)}]))
            .mark_text(style="note", align="left", baseline="top", lineBreak="\n", lineHeight=LINE)
            .encode(x=alt.value(scene.left), y=alt.value(HEIGHT + 46), text="text:N")
        )
