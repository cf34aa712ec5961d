"""A page in Markdown, for pull requests and tickets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from solscope.model.verdict import Analysis
from solscope.render.view import numbers
from solscope.render.view import page as view
from solscope.render.view.columns import cell, chosen
from solscope.render.view.page import Page
from solscope.render.view.rows import Row
from solscope.render.view.selection import grouped_absences, select
from solscope.render.view.speeds import Speed

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\`*\[\]<>|~$&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def page(
    analysis: Analysis, *, top: int | None = None, sort: str = "time", show_session: bool = False
) -> str:
    """The analysis in Markdown. Names are escaped: none can become markup."""
    shown = view.page(analysis, show_session=show_session)
    rows = select(shown.rows, sort=sort, top=top)
    return "\n".join(_lines(shown, rows)).rstrip() + "\n"


def _lines(shown: Page, rows: Sequence[Row]) -> Iterator[str]:
    """The page, line by line."""
    yield f"# solscope: {code(shown.title)}"
    yield ""
    yield from _incomplete(shown)
    for report in shown.reports:
        parts = (report.device, f"ceilings {report.chip}", report.tool, report.context)
        text = " · ".join(escape(part) for part in parts if part)
        yield f"- {code(report.file)} (sha256 {report.digest}…): {text}"
        for name, value in report.session:
            yield f"  - {name}: {escape(value)}"
        for issue in report.issues:
            yield f"  - {issue.severity.value}: {escape(issue.what)}"
    yield ""
    shares = ", ".join(f"{s.style.label} {s.text}" for s in shown.shares)
    yield f"{shown.lead}. Bound by: {shares}."
    yield ""
    yield from _table(rows)
    yield ""
    if len(rows) < len(shown.rows):
        yield f"{len(shown.rows) - len(rows)} more kernels are not shown."
        yield ""
    yield from _notes(shown, rows)
    yield from _kernels(rows)
    yield from _incomplete(shown)


def escape(text: str) -> str:
    r"""Text that Markdown and HTML show as it is; `code` in it stays code.

    >>> escape("f<int> *b* `--set full`")
    'f\\<int\\> \\*b\\* `--set full`'
    """
    parts = _CODE.split(text)
    shown = [part if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts)]
    return "".join(shown)


def code(text: str) -> str:
    r"""A name as code; inside a table too, and whatever it holds.

    >>> code("f<int>|`x`")
    '`` f<int>\\|`x` ``'
    """
    text = text.replace("|", "\\|")
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (max(len(run) for run in re.findall("`+", text)) + 1)
    return f"{fence} {text} {fence}"


def _incomplete(shown: Page) -> Iterator[str]:
    if shown.incomplete_text:
        yield f"> **{escape(shown.incomplete_text)}**"
        yield ""


def _table(rows: Sequence[Row]) -> Iterator[str]:
    columns = chosen(rows, is_narrow=True)
    yield "| # | kernel | " + " | ".join(column.title for column in columns) + " |"
    yield "|--:|:--|" + "".join("--:|" if column.is_number else ":--|" for column in columns)
    for row in rows:
        cells = [cell(row, column) for column in columns]
        shown = " | ".join(escape(c.text) + (" \\*" if c.over else "") for c in cells)
        yield f"| {row.rank} | {code(row.name)} | {shown} |"


def _notes(shown: Page, rows: Sequence[Row]) -> Iterator[str]:
    if shown.ceilings:
        yield "SoL is achieved over the nearest counted roof:"
        yield ""
    for ceiling in shown.ceilings:
        clock = "clock not stated" if ceiling.clock == numbers.ABSENT else f"at {ceiling.clock}"
        device = f"{escape(ceiling.device)}: " if shown.has_several_devices else ""
        yield f"- {device}{ceiling.resource} {ceiling.peak}: {code(ceiling.key)}, {clock}"
    for line in shown.over:
        yield f"- above 100 %: {escape(line)}"
    if any(row.dram_rate.text.startswith("≈") for row in rows):
        yield "- ≈ is an estimate: percent of peak × peak; the bytes were not counted"
    if shown.unknown_share:
        yield f"- family unknown: {shown.unknown_share} of the time"
    yield ""
    if shown.unmeasured_text:
        yield f"**{escape(shown.unmeasured_text)}**"
        yield ""
    missing = list(grouped_absences(shown, {row.rank for row in rows}))
    if missing:
        yield "## Not measured"
        yield ""
        for absence, kernels in missing:
            remedy = f" → {escape(absence.remedy)}" if absence.remedy else ""
            yield f"- {code(absence.field)} ({kernels}): {escape(absence.reason)}{remedy}"
        yield ""


def _kernels(rows: Sequence[Row]) -> Iterator[str]:
    yield "## Kernels"
    yield ""
    for row in rows:
        yield f"### {row.rank}. {code(row.name)}"
        yield ""
        yield f"- {row.shape}, {row.launches_text}, {code(row.file)}"
        for ground in row.grounds:
            yield f"- {row.bound_label}: {escape(ground)}"
        for name, speed in (("profile", row.profiled), ("data sheet", row.sheet)):
            yield from _speed(name, speed)
        for stall in row.stalls[:3]:
            yield f"- stalled on {escape(stall.reason)}: {stall.text} of {row.stalls_source}"
        for finding in row.findings:
            yield f"- {finding.severity.value}: {escape(finding.fact)} → {escape(finding.remedy)}"
        for advice in row.advice:
            speedup = f" ({advice.speedup})" if advice.speedup else ""
            yield f"- ncu rule, {escape(advice.name)}: {escape(advice.message)}{speedup}"
        yield ""


def _basis(speed: Speed) -> str:
    return speed.basis.replace(speed.ceiling, code(speed.ceiling))


def _speed(name: str, speed: Speed) -> Iterator[str]:
    if speed.ceiling:
        over = f"; above 100 %: {escape(speed.over)}" if speed.over else ""
        yield f"- {name}: {speed.cell} = {_basis(speed)}{over}"
