"""A capture's findings as pages of its bundle: what was measured, what it means, what is next.

Observations hold measured values only. What is concluded from them stands apart, with how sure it
is; the summary is a draft, because one capture proves no claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solscope.model.campaign import Lever
from solscope.model.verdict import Analysis
from solscope.render.markdown import code, escape
from solscope.render.view import numbers
from solscope.render.view import page as view
from solscope.render.view.page import Page
from solscope.render.view.rows import Row

MOST_KERNELS = 20
_SUMMARY_KERNELS = 5
_HEAD = "|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|:--|"


def observations(analysis: Analysis) -> str:
    """Measured values of each kernel, with the file that they are from; absent is said."""
    shown = view.page(analysis, show_session=False)
    return "\n".join(_observations(shown)) + "\n"


def _observations(shown: Page) -> Iterator[str]:
    yield "# Observations"
    yield ""
    yield f"Measured values only; {numbers.ABSENT} is not measured, never zero."
    yield ""
    for report in shown.reports:
        parts = (report.device, report.tool, report.context)
        text = " · ".join(escape(part) for part in parts if part)
        yield f"- {code(report.file)} (sha256 {report.digest}…): {text}"
    yield ""
    yield (
        "| # | kernel | launches | time | FLOP/s | DRAM bytes/s | FLOP/byte | SM busy | DRAM busy "
        "| occupancy | first stall |"
    )
    yield _HEAD
    for row in shown.rows[:MOST_KERNELS]:
        cells = (
            row.launches,
            row.time,
            row.flop_rate,
            row.dram_rate,
            row.intensity,
            row.sm_busy,
            row.dram_busy,
            row.occupancy,
        )
        stall = f"{row.stalls[0].reason} {row.stalls[0].text}" if row.stalls else numbers.ABSENT
        values = " | ".join(escape(cell.text) for cell in cells)
        yield f"| {row.rank} | {code(row.name)} | {values} | {escape(stall)} |"
    yield from _more(shown)
    yield ""
    if any(row.dram_rate.text.startswith("≈") for row in shown.rows[:MOST_KERNELS]):
        yield "≈ is no measured rate: ncu's percent of peak × peak; the bytes were not counted."
        yield ""
    for row in shown.rows[:MOST_KERNELS]:
        yield f"- {row.rank}: {code(row.name)}, {row.shape}, from {code(row.file)}"


def mechanisms(analysis: Analysis) -> str:
    """What is concluded of each kernel, from what, and how sure that is."""
    shown = view.page(analysis, show_session=False)
    return "\n".join(_mechanisms(shown)) + "\n"


def _mechanisms(shown: Page) -> Iterator[str]:
    yield "# Mechanisms"
    yield ""
    yield "Observation -> mechanism -> confidence. The numbers are those of 01-observations.md."
    for row in shown.rows[:MOST_KERNELS]:
        yield ""
        yield f"## {row.rank}. {code(row.name)}"
        yield ""
        yield f"- observation: {'; '.join(map(escape, row.grounds)) or 'nothing was counted'}"
        yield f"- mechanism: bound by {escape(row.bound_label)}{_roof(row)}"
        yield f"- confidence: {_confidence(row)}"
        for finding in row.findings:
            yield f"- caveat: {escape(finding.fact)} → {escape(finding.remedy)}"
    yield from _more(shown)


def _roof(row: Row) -> str:
    """A collective waits for its peers: of it no roof is claimed."""
    return "" if row.bound == "peers" else f"; at the roof: {escape(row.at_roof)}"


def _confidence(row: Row) -> str:
    if row.profiled.cell.raw is not None:
        return "work and bytes were counted"
    return "percentages only: no work was counted, so that no distance to a roof is known"


def _more(shown: Page) -> Iterator[str]:
    left = len(shown.rows) - MOST_KERNELS
    if left > 0:
        yield ""
        yield f"{left} more kernels are not listed; `solscope analyze` on the reports shows them."


def summary(
    analysis: Analysis, *, experiment: str, lever: Lever | None, notes: Sequence[str] = ()
) -> str:
    """The bundle's first page: status, findings, the next lever. Always a draft."""
    shown = view.page(analysis, show_session=False)
    return "\n".join(_summary(shown, experiment, lever, notes)) + "\n"


def _summary(
    shown: Page, experiment: str, lever: Lever | None, notes: Sequence[str]
) -> Iterator[str]:
    yield f"# {experiment}"
    yield ""
    yield (
        "Status: DRAFT. One capture is no verdict: `solscope campaign add`, then `solscope gate` "
        "names each condition that is not met."
    )
    yield ""
    yield "## Findings"
    yield ""
    yield f"{escape(shown.lead)}."
    yield ""
    for row in shown.rows[:_SUMMARY_KERNELS]:
        share = f"{row.share.text} of the profiled time, " if row.share.raw is not None else ""
        yield f"- {code(row.name)}: {share}bound by {escape(row.bound_label)}, {_light(row)}"
    for note in notes:
        yield f"- {escape(note)}"
    yield ""
    yield "## Next lever"
    yield ""
    if lever is None:
        yield "No kernel was measured."
        return
    win = lever.max_win
    most = "what it may win is not known" if win is None else f"at most {win:.1%} of {lever.basis}"
    yield f"{escape(lever.what)}; {most}. Cost class: {lever.cost}."
    yield ""
    yield f"It is proven or refuted by: {escape(lever.gate)}."


def _light(row: Row) -> str:
    reached = row.profiled.cell
    if row.bound == "peers":
        return "of which no speed of light is claimed: its time includes waiting"
    if reached.raw is None:
        return "speed of light not known: no work was counted"
    return f"{escape(reached.text)} of speed of light ({code(row.profiled.ceiling)})"
