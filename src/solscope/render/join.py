"""Joined kernels as text and as JSON (``solscope.join/1``)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.join import JOIN_SCHEMA, Join, JoinedKernel
from solscope.render.view import bounds, numbers
from solscope.render.view.page import base_name

_HEADER = ("samples", "total", "share", "launches", "mean", "DRAM", "SM busy", "at most")


def table(found: Join, *, width: int, top: int | None) -> str:
    """One line a kernel: sampled, timed, counted; its verdict and how sure the match is."""
    rows = found.kernels if top is None else found.kernels[:top]
    name_width = max(20, width - 78)
    lines = [
        f"{'kernel':<{name_width}} "
        + " ".join(f"{title:>8}" for title in _HEADER)
        + "  verdict (match)"
    ]
    for row in rows:
        lines.append(_line(row, name_width))
        for note in row.notes:
            lines += _wrapped("    ", note, width)
    if len(rows) < len(found.kernels):
        lines.append(f"and {len(found.kernels) - len(rows)} more kernels (--top)")
    lines.append("")
    lines += _wrapped("", _LEGEND, width)
    for note in found.notes:
        lines += _wrapped("note: ", note, width)
    return "\n".join(line.rstrip() for line in lines)


_LEGEND = (
    "samples: share of samples; total, share, launches, mean: timeline, of the GPU that took "
    "longest; DRAM, SM busy: ncu, percent of peak; at most: part of all GPU time that running at "
    "its own ceiling would save"
)


def _line(row: JoinedKernel, name_width: int) -> str:
    time = row.time
    main = max(row.counters, key=lambda c: c.totals.duration_ns or 0.0, default=None)
    inexact = "" if time is None or time.count_is_exact else "?"
    cells = (
        numbers.fraction(row.sample_share),
        numbers.duration(None if time is None else time.total_ns),
        numbers.fraction(None if time is None else time.share),
        numbers.ABSENT if time is None or time.launches is None else f"{time.launches:,}{inexact}",
        numbers.duration(None if time is None else time.mean_ns),
        numbers.percent(None if main is None else main.totals.dram_pct),
        numbers.percent(None if main is None else main.totals.sm_busy_pct),
        numbers.fraction(row.win_bound),
    )
    name = numbers.shorten(numbers.clean(row.name), name_width)
    return (
        f"{name:<{name_width}} "
        + " ".join(f"{cell:>8}" for cell in cells)
        + f"  {bounds.label(row.verdict)} ({row.confidence})"
    )


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        label + numbers.clean(text), width=max(width, 60), subsequent_indent="    "
    )


def as_json(found: Join) -> str:
    """The join as JSON by the schema ``solscope.join/1``: ns, shares 0 to 1, percent 0 to 100."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document(found)), indent=2).decode()


def document(found: Join) -> dict[str, Any]:
    """The same as plain lists and dictionaries. Each column names the source that it is from."""
    return {
        "schema": JOIN_SCHEMA,
        "sources": {
            "samples": [_source(r.provenance) for r in found.samples],
            "timelines": [_source(r.provenance) for r in found.timelines],
            "counters": []
            if found.analysis is None
            else [_source(r.provenance) for r in found.analysis.reports],
        },
        "kernels": [_kernel(row) for row in found.kernels],
        "notes": list(found.notes),
    }


def _source(provenance: Any) -> dict[str, Any]:
    return {
        "path": base_name(provenance.path),
        "sha256": provenance.sha256,
        "format": provenance.format,
    }


def _kernel(row: JoinedKernel) -> dict[str, Any]:
    time = row.time
    return {
        "name": row.name,
        "name_full": row.name_full,
        "family": row.identity.family,
        "category": row.identity.category,
        "is_collective": row.identity.is_collective,
        "match": row.confidence,
        "samples": {"share": row.sample_share, "estimated_ns": row.estimated_ns},
        "timeline": None
        if time is None
        else {
            "total_ns": time.total_ns,
            "mean_ns": time.mean_ns,
            "launches": time.launches,
            "launches_are_exact": time.count_is_exact,
            "share": time.share,
            "gpus": time.gpus,
            "skew": time.skew,
            "variants": time.variants,
        },
        "counters": _counters(row.counters),
        "win_bound": row.win_bound,
        "verdict": row.verdict,
        "notes": list(row.notes),
    }


def _counters(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return list(_each(rows))


def _each(rows: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for row in rows:
        totals = row.totals
        binding = row.point.profiled_binding
        yield {
            "report": totals.key.report,
            "device": totals.device.ordinal,
            "launches": totals.launches,
            "dram_pct": totals.dram_pct,
            "sm_busy_pct": totals.sm_busy_pct,
            "occupancy_pct": totals.achieved_occupancy_pct,
            "speed_of_light": None if binding is None else binding.value,
            "bound": row.verdict.bound,
        }
