"""``report_status.json``: rigor, focus, which pages are there, which are not and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from solscope.render.campaign.pdf import HEADINGS, ROOFLINE_PAGE, PdfCheck
from solscope.render.view import numbers
from solscope.render.view.numbers import ABSENT

STATUS_SCHEMA = "solscope.report-status/1"


def document(content: dict[str, Any], check: PdfCheck, files: Mapping[str, str]) -> dict[str, Any]:
    """The status of pages that were written and opened again. ``files`` maps name to sha256."""
    return {
        "schema": STATUS_SCHEMA,
        "campaign": content["slug"],
        "tier": content["tier"],
        "sol_rigor": None if content["rigor"] == "not stated" else content["rigor"],
        "focus": content["focus"] or None,
        "written_at": content["taken_at"],
        "files": dict(files),
        "page_count": check.page_count,
        "kernel_rows": len(content["all_kernels"]),
        "pages": [_page(heading, content, check) for heading in HEADINGS],
    }


def _page(heading: str, content: dict[str, Any], check: PdfCheck) -> dict[str, Any]:
    number = check.first_page_of.get(heading)
    name = {"Next lever": "summary"}.get(heading, heading.lower())
    why = _why_empty(heading, content)
    if number is None:
        why = "the heading was not found when the PDF was opened again"
    elif heading == "Roofline" and number != ROOFLINE_PAGE and why is None:
        why = f"stands on page {number}: what comes before took more than its page"
    return {
        "name": name,
        "page": number,
        "is_there": number is not None and why is None,
        "why": why,
    }


def _why_empty(heading: str, content: dict[str, Any]) -> str | None:
    """Why a page says nothing, or ``None``."""
    if not content["cells"]:
        return None if heading in ("Next lever", "Gates") else "the campaign has no cell"
    if heading == "Roofline" and not content["drawn"]:
        return "no kernel could be placed: neither FLOP nor a busy percentage with a ceiling"
    if heading == "Cells compared" and not content["comparison"]["tables"]:
        return "no kernel is in more than one cell"
    if heading == "Stalls and occupancy" and all(
        w["stalls"] == "not measured" and w["occupancy"] == ABSENT for w in content["all_warps"]
    ):
        return "neither stalls nor occupancy were collected"
    return None


def encode(status: dict[str, Any]) -> bytes:
    """The file's bytes."""
    return (json.dumps(status, indent=2, ensure_ascii=False) + "\n").encode()


def text(status: dict[str, Any]) -> str:
    """What was written, in a few lines."""
    missing = [f"  no {p['name']}: {p['why']}" for p in status["pages"] if not p["is_there"]]
    rigor = status["sol_rigor"] or "not stated"
    lines = [
        f"{status['campaign']}: {status['tier']}, rigor {rigor}, "
        f"{numbers.things(status['page_count'], 'page')}, "
        f"{numbers.things(status['kernel_rows'], 'kernel')}",
        *missing,
    ]
    return "\n".join(lines)
