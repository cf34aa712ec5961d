"""The analysis as a PDF of several pages, for reviewers and archives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from solscope.model.finding import Absence
from solscope.model.verdict import Analysis
from solscope.render import figure
from solscope.render.figure.panels import panels
from solscope.render.view import fonts
from solscope.render.view import page as view
from solscope.render.view.columns import Column, cell, chosen
from solscope.render.view.numbers import ABSENT
from solscope.render.view.page import Page
from solscope.render.view.rows import Row
from solscope.render.view.selection import grouped_absences
from solscope.render.view.speeds import Speed

MOST_DETAILED = 40
"""Kernels that get their own detail; the table holds all of them."""


def document(analysis: Analysis, *, show_session: bool = False) -> bytes:
    """The PDF. Everything from a report enters as data, never as Typst markup."""
    import typst

    shown = view.page(analysis, show_session=show_session)
    drawn = figure.limited(panels(analysis, shown))
    with tempfile.TemporaryDirectory(prefix="solscope-pdf-") as folder:
        root = Path(folder)
        for index, panel in enumerate(drawn):
            chart = figure.pdf(fonts.shown(figure.of_panels([panel])))
            (root / f"figure-{index}.pdf").write_bytes(chart)
        source = (files("solscope.render") / "templates" / "page.typ").read_bytes()
        (root / "page.typ").write_bytes(source)
        (root / "page.json").write_text(
            json.dumps(fonts.shown(_content(shown, len(drawn)))), "utf-8"
        )
        # System fonts would make the same analysis look different from machine to machine.
        pages: bytes = typst.compile(root / "page.typ", root=root, ignore_system_fonts=True)
    return pages


def _content(shown: Page, figures: int) -> dict[str, Any]:
    columns = [c for c in chosen(shown.rows, is_narrow=True) if c.key != "limiter"]
    common = _common(shown.rows)
    missing = grouped_absences(shown, {row.rank for row in shown.rows})
    return {
        "title": shown.title,
        "lead": shown.lead,
        "incomplete": shown.incomplete_text,
        "unknown": shown.unknown_share,
        "figures": figures,
        "no_figure": f"{figure.NOTHING_TO_DRAW} {figure.NEXT_STEP}",
        "shares": [
            {
                "label": s.style.label,
                "colour": s.style.colour,
                "share": s.share,
                "text": s.text,
                "meaning": s.style.meaning,
            }
            for s in shown.shares
        ],
        "reports": [_report(r) for r in shown.reports],
        "columns": [
            {"title": c.title, "is_number": c.is_number, "is_bound": c.key == "bound_label"}
            for c in columns
        ],
        "rows": [_line(row, columns, several=len(shown.reports) > 1) for row in shown.rows],
        "unmeasured": shown.unmeasured_text,
        "details": [_detail(row, common) for row in shown.rows[:MOST_DETAILED]],
        "undetailed": max(len(shown.rows) - MOST_DETAILED, 0),
        "over": list(shown.over),
        "has_estimate": any(row.dram_rate.note for row in shown.rows),
        "missing": [
            {
                "field": a.field,
                "where": where,
                "reason": a.reason,
                "remedy": a.remedy or "–",
            }
            for a, where in missing
        ],
        "ceilings": [
            {
                "resource": f"{c.resource}, {c.device}"
                if shown.has_several_devices
                else c.resource,
                "peak": c.peak,
                "clock": c.clock,
                "key": c.key,
                "source": c.source,
            }
            for c in shown.ceilings
        ],
    }


def _report(report: view.ReportRow) -> dict[str, Any]:
    facts = [
        ("sha256", f"{report.digest}…"),
        ("profiler", report.tool),
        ("device", report.device),
        ("ceilings", report.chip),
        ("launches", report.launches),
        ("taken with", report.context or "–"),
        *report.session,
    ]
    notes = [f"{i.severity.value}: {i.what}" for i in report.issues]
    notes += [f"not measured: {a.field}: {a.reason}" for a in report.absences]
    return {"file": report.file, "complete": report.complete, "facts": facts, "notes": notes}


def _line(row: Row, columns: Sequence[Column], *, several: bool) -> dict[str, Any]:
    launches = "" if row.launches.raw == 1 else row.launches_text
    where = f"{row.file} · {row.device}" if several else ""
    return {
        "rank": row.rank,
        "name": row.name,
        "sub": " · ".join(p for p in (row.family, launches, where) if p),
        "colour": row.bound_style.colour,
        "cells": [
            shown.text + ("*" if shown.over else "")
            for shown in (cell(row, column) for column in columns)
        ],
    }


def _common(rows: Sequence[Row]) -> frozenset[Absence]:
    """What every kernel lacks: said once for all, not with each."""
    if len(rows) < 2:
        return frozenset()
    return frozenset(rows[0].absences).intersection(*(row.absences for row in rows[1:]))


def _detail(row: Row, common: frozenset[Absence]) -> dict[str, Any]:
    what = (row.role, row.family, row.category, row.dtype, row.shape)
    spread = f" ({row.spread})" if row.spread else ""
    return {
        "rank": row.rank,
        "name": row.name,
        "full": row.name_full,
        "colour": row.bound_style.colour,
        "bound": row.bound_label,
        "share": row.share.text,
        "what": " · ".join(what),
        "time": f"{row.launches_text}, {row.time}{spread}, {row.device}, {row.file}",
        "grounds": [*row.grounds, f"At the roof: {row.at_roof}"],
        "standings": [_standing(s) for s in row.standings],
        "stalls": [{"reason": s.reason, "text": s.text, "share": s.share} for s in row.stalls],
        "stalls_source": row.stalls_source,
        "facts": [
            # What is absent stands in the list of absences; a column of dashes says nothing.
            fact
            for fact in (
                ("intensity", row.intensity.text),
                ("rate", row.flop_rate.text),
                ("DRAM", row.dram_rate.text),
                *row.facts,
            )
            if ABSENT not in fact[1]
        ],
        "lacks_common": bool(common),
        "absences": [
            {"field": a.field, "reason": a.reason, "remedy": a.remedy or ""}
            for a in row.absences
            if a not in common
        ],
        "findings": [
            {"severity": f.severity.value, "fact": f.fact, "remedy": f.remedy} for f in row.findings
        ],
        "advice": [
            {"name": a.name, "message": a.message, "speedup": a.speedup} for a in row.advice
        ],
    }


def _standing(speed: Speed) -> dict[str, str]:
    return {
        "resource": speed.resource,
        "at": speed.at,
        "value": speed.cell.text,
        "basis": speed.basis,
        "over": speed.over,
    }
