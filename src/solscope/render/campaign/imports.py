"""What came into a campaign, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator

from solscope.model.campaign import CampaignConfig, Cell
from solscope.render.view import bounds, numbers
from solscope.render.view.numbers import clean

MOST_KERNELS = 10
_OF_THE_DEVICE = ("device-differs",)


def added(cell: Cell, slug: str, *, is_dry: bool) -> str:
    """The kernels of a new cell, and what its context lacks."""
    return "\n".join(_lines(cell, slug, is_dry))


def added_json(cell: Cell, slug: str, *, is_dry: bool) -> str:
    """The same as JSON, schema ``solscope.import/1``. Shares and speeds of light are 0 to 1."""
    document = {
        "schema": _IMPORT,
        "status": "would add" if is_dry else "added",
        "campaign": slug,
        "cell": cell.id,
        "hw_key": cell.hw_key,
        "run_id": cell.run_id,
        "reports": [
            {"file": report.provenance.path, "sha256": report.provenance.sha256}
            for report in cell.analysis.reports
        ],
        "kernels": [
            {
                "name": row.totals.name,
                "time_share": row.time_share,
                "speed_of_light_profiled": row.point.profiled_binding.value
                if row.point.profiled_binding is not None
                else None,
                "intensity_flops_per_byte": row.point.intensity,
            }
            for row in cell.analysis.kernels
        ],
        "capture_problems": list(cell.capture.problems),
        "is_sealed": cell.capture.is_sealed,
        "context_missing": list(cell.context.missing()),
        "context_refused": dict(cell.context.refused),
    }
    return json.dumps(document, indent=2)


_IMPORT = "solscope.import/1"


def made(slug: str, config: CampaignConfig) -> str:
    """A new campaign, and what its rubric lacks."""
    lines = [f"campaign {slug}: {clean(config.name)}"]
    lines += [f"  {clean(problem)}" for problem in config.krhpa_problems]
    return "\n".join([*lines, f"next: solscope campaign add {slug} --cell CELL BUNDLE"])


def made_json(slug: str, config: CampaignConfig) -> str:
    """The same as JSON, schema ``solscope.import/1``."""
    document = {
        "schema": _IMPORT,
        "status": "made",
        "campaign": slug,
        "name": config.name,
        "krhpa_problems": list(config.krhpa_problems),
    }
    return json.dumps(document, indent=2)


def skipped_json(bundle: str, reason: str) -> str:
    """The same as JSON, schema ``solscope.import/1``."""
    document = {"schema": _IMPORT, "status": "skipped", "bundle": bundle, "reason": reason}
    return json.dumps(document, indent=2)


def skipped(bundle: str, reason: str) -> str:
    """A bundle that was left alone."""
    return f"skipped {clean(bundle)}: {clean(reason)}"


def _lines(cell: Cell, slug: str, is_dry: bool) -> Iterator[str]:
    rows = cell.analysis.kernels
    counted = sum(row.point.intensity is not None for row in rows)
    verb = "would add" if is_dry else "added"
    yield (
        f"{verb} cell {cell.id} to {slug}: {numbers.things(len(rows), 'kernel')} of "
        f"{numbers.things(len(cell.analysis.reports), 'report')}, hardware "
        f"{cell.hw_key or 'unknown'}, intensity measured for {counted}"
    )
    for row in rows[:MOST_KERNELS]:
        share = numbers.fraction(row.time_share) if row.time_share is not None else "–"
        speed = row.point.profiled_binding
        stands = "speed of light not measured"
        if speed is not None:
            stands = f"{numbers.fraction(speed.value)} of {bounds.label(speed.resource)}"
        yield f"  {share:>7}  {clean(row.totals.name)[:48]:<48}  {stands}"
    if len(rows) > MOST_KERNELS:
        yield f"  and {len(rows) - MOST_KERNELS} more"
    for fact in dict.fromkeys(f.fact for r in rows for f in r.findings if f.code in _OF_THE_DEVICE):
        yield f"  warning: {clean(fact)}"
    for problem in cell.capture.problems:
        yield f"  capture: {clean(problem)}"
    missing = cell.context.missing()
    if missing:
        yield f"context: {numbers.things(len(missing), 'field')} missing, so the numbers are DRAFT"
        yield f"  {', '.join(cell.context.gaps())}"
    for name, why in cell.context.refused.items():
        yield f"  refused {clean(name)}: {clean(why)}"
