"""Comparisons as text, as Markdown and as JSON (``solscope.compare/1``)."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.model.comparison import (
    COMPARISON_SCHEMA,
    Change,
    ComparedKernel,
    ComparedReport,
    Comparison,
    KernelPair,
)
from solscope.model.conditions import ContextFact
from solscope.render.markdown import code, escape
from solscope.render.view import bounds, numbers
from solscope.render.view.page import base_name

_LABELS: Mapping[str, str] = {
    "duration_ns": "time",
    "flop_count": "FLOP",
    "dram_bytes": "DRAM traffic",
    "dram_read_bytes": "DRAM read",
    "dram_write_bytes": "DRAM written",
    "l2_bytes": "L2 traffic",
    "arithmetic_intensity": "intensity",
    "flop_per_s": "FLOP rate",
    "dram_bytes_per_s": "DRAM rate",
    "speed_of_light_profiled": "speed of light, profiled clock",
    "speed_of_light_datasheet": "speed of light, data sheet",
    "sm_busy_pct": "SM busy",
    "dram_pct": "DRAM busy",
    "tensor_pipe_pct": "tensor pipe busy",
    "achieved_occupancy_pct": "occupancy achieved",
    "theoretical_occupancy_pct": "occupancy possible",
    "registers_per_thread": "registers a thread",
    "smem_per_block_bytes": "shared memory a block",
    "waves_per_sm": "waves",
}
_STALLS_SHOWN = 3
_NAME_WIDTH = 30
_REPEATED = 5
"""Kernels of one side that are named before the rest is counted."""


def table(found: Comparison, *, width: int, top: int | None) -> str:
    """Each pair: what is not alike, then a line for each quantity (per launch)."""
    lines = [*_sides(found), "", *_wrapped(_headline(found), width)]
    shown = found.pairs if top is None else found.pairs[:top]
    for pair in shown:
        lines += ["", *_pair(pair, width)]
    if len(shown) < len(found.pairs):
        lines += ["", f"and {len(found.pairs) - len(shown)} more pairs (--top)"]
    for side, kernels in (("a", found.only_in_a), ("b", found.only_in_b)):
        lines += ["", *_one_sided(side, kernels, width)] if kernels else []
    return "\n".join(line.rstrip() for line in lines)


def _sides(found: Comparison) -> Iterator[str]:
    for side, reports in (("a", found.a), ("b", found.b)):
        for report in reports[:_REPEATED]:
            yield f"{side}: {numbers.clean(base_name(report.path))}  {_origin(report)}".rstrip()
        if len(reports) > _REPEATED:
            yield f"{side}: and {len(reports) - _REPEATED} more reports"


def _origin(report: ComparedReport) -> str:
    tool = " ".join(part for part in (report.tool, report.tool_version) if part)
    digest = "" if report.sha256 is None else f"sha256 {report.sha256[:12]}…"
    return " · ".join(numbers.clean(part) for part in (tool, digest) if part)


def _headline(found: Comparison) -> str:
    if not found.pairs:
        return "DRAFT: no kernel is on both sides; pair kernels of other names with --match OLD=NEW"
    drafts = [pair for pair in found.pairs if pair.is_draft]
    count = f"{len(found.pairs)} {'pair' if len(found.pairs) == 1 else 'pairs'}"
    if not drafts:
        return f"{count}, all measured alike"
    unlike = sum(not pair.is_comparable for pair in drafts)
    unknown = len(drafts) - unlike
    parts = [
        f"{unlike} not comparable" if unlike else "",
        f"{unknown} with conditions that are not known" if unknown else "",
    ]
    return f"DRAFT: of {count}, {' and '.join(part for part in parts if part)}"


def _pair(pair: KernelPair, width: int) -> Iterator[str]:
    draft = "DRAFT  " if pair.is_draft else ""
    yield numbers.shorten(f"{draft}{_title(pair)}", max(width, 60))
    if pair.matched_by != "name and launch shape":
        yield f"  matched by: {pair.matched_by}"
    for text in _conditions(pair.context):
        yield from _wrapped(text, width, "  ")
    yield f"  {'per launch':<{_NAME_WIDTH}} {'a':>14} {'b':>14}  change"
    for label, change in _rows(pair):
        yield _row(label, change)
    for reason in dict.fromkeys(c.why_not for _, c in _rows(pair) if c.why_not):
        yield from _wrapped(f"no difference given: {reason}", width, "  ")
    bound = bounds.label(pair.a.bound), bounds.label(pair.b.bound)
    yield f"  {'bound by':<{_NAME_WIDTH}} {bound[0]:>14} {bound[1]:>14}"
    for note in pair.notes:
        yield from _wrapped(f"note: {note}", width, "  ")


def _title(pair: KernelPair) -> str:
    a, b = numbers.clean(pair.a.name), numbers.clean(pair.b.name)
    name = a if a == b else f"{a} → {b}"
    times = (
        f"{pair.a.launches}"
        if pair.a.launches == pair.b.launches
        else f"{pair.a.launches} and {pair.b.launches}"
    )
    return f"{name}  ({times} {_launches(pair.b.launches)})"


def _launches(count: int) -> str:
    return "launch" if count == 1 else "launches"


def _conditions(context: Sequence[ContextFact]) -> Iterator[str]:
    for fact in context:
        if fact.state == "differs":
            yield f"{fact.name} differs: {numbers.clean(fact.a or '')} in a, " + numbers.clean(
                f"{fact.b} in b"
            )
    unknown = [_unknown(fact) for fact in context if fact.state == "unknown"]
    if unknown:
        yield f"not known: {', '.join(unknown)}"


def _unknown(fact: ContextFact) -> str:
    if fact.a is None and fact.b is None:
        return fact.name
    return f"{fact.name} of {'a' if fact.a is None else 'b'}"


def _rows(pair: KernelPair) -> Iterator[tuple[str, Change]]:
    for change in pair.changes:
        yield _LABELS.get(change.quantity, change.quantity), change
    for change in pair.stalls[:_STALLS_SHOWN]:
        yield f"stalled on {change.quantity.replace('_', ' ')}", change


def _row(label: str, change: Change) -> str:
    cells = f"{_value(change.a, change.unit):>14} {_value(change.b, change.unit):>14}"
    return f"  {label:<{_NAME_WIDTH}} {cells}  {_difference(change)}"


def _value(value: float | None, unit: str) -> str:
    if unit == "ns":
        return numbers.duration(value)
    if unit == "%":
        return numbers.percent(value)
    if unit == "fraction":
        return numbers.fraction(value)
    if unit == "FLOP/B":
        return numbers.intensity(value)
    if unit in ("registers", "waves"):
        return numbers.ABSENT if value is None else numbers.plain(value)
    return numbers.amount(value, unit)


def _difference(change: Change) -> str:
    """Points for percentages, a ratio and percent for amounts."""
    if change.difference is None:
        return numbers.ABSENT
    if change.unit in ("%", "fraction"):
        points = change.difference * (100 if change.unit == "fraction" else 1)
        return "same" if abs(points) < 0.005 else f"{points:+.2f} points"
    if change.difference == 0:
        return "same"
    if change.ratio is not None and abs(change.ratio - 1) < 0.0005:
        return "within 0.05 %"
    if change.ratio is None:
        return f"from 0 by {_value(change.difference, change.unit)}"
    return f"x{change.ratio:.3g} ({100 * (change.ratio - 1):+.1f} %)"


def _one_sided(side: str, kernels: Sequence[ComparedKernel], width: int) -> Iterator[str]:
    yield f"only in {side}: {len(kernels)}"
    for kernel in kernels[:_REPEATED]:
        time = numbers.duration(kernel.quantities.get("duration_ns"))
        shape = "" if kernel.grid is None else f", grid {'x'.join(map(str, kernel.grid))}"
        name = numbers.shorten(numbers.clean(kernel.name), max(20, width - 50))
        yield f"  {name}  {time} a launch, {kernel.launches} {_launches(kernel.launches)}{shape}"
    if len(kernels) > _REPEATED:
        yield f"  and {len(kernels) - _REPEATED} more (--format json lists all)"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width=max(width, 60), initial_indent=indent, subsequent_indent=indent + "    "
    )


def markdown(found: Comparison, *, top: int | None) -> str:
    """The comparison in Markdown. Names are escaped: none can become markup."""
    lines = ["# solscope: comparison", ""]
    lines += [f"- {escape(line)}" for line in _sides(found)]
    lines += ["", escape(_headline(found))]
    for pair in found.pairs if top is None else found.pairs[:top]:
        lines += ["", *_markdown_pair(pair)]
    if top is not None and top < len(found.pairs):
        lines += ["", f"{len(found.pairs) - top} more pairs are not shown."]
    for side, kernels in (("a", found.only_in_a), ("b", found.only_in_b)):
        if kernels:
            names = ", ".join(code(kernel.name) for kernel in kernels)
            lines += ["", f"Only in {side}: {names}"]
    return "\n".join(lines) + "\n"


def _markdown_pair(pair: KernelPair) -> Iterator[str]:
    yield f"## {'DRAFT: ' if pair.is_draft else ''}{escape(_title(pair))}"
    yield ""
    for text in _conditions(pair.context):
        yield f"- {escape(text)}"
    for reason in dict.fromkeys(c.why_not for _, c in _rows(pair) if c.why_not):
        yield f"- no difference given: {escape(reason)}"
    for note in pair.notes:
        yield f"- {escape(note)}"
    yield from ("", "| per launch | a | b | change |", "|---|---:|---:|---:|")
    for label, change in _rows(pair):
        a, b = _value(change.a, change.unit), _value(change.b, change.unit)
        yield f"| {escape(label)} | {a} | {b} | {_difference(change)} |"
    yield f"| bound by | {bounds.label(pair.a.bound)} | {bounds.label(pair.b.bound)} | |"


def as_json(found: Comparison) -> str:
    """The comparison by the schema ``solscope.compare/1``, in base units, per launch."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document(found)), indent=2).decode()


def document(found: Comparison) -> dict[str, Any]:
    """The same as plain lists and dictionaries."""
    return {
        "schema": COMPARISON_SCHEMA,
        "is_draft": found.is_draft,
        "a": [_report(report) for report in found.a],
        "b": [_report(report) for report in found.b],
        "pairs": [_json_pair(pair) for pair in found.pairs],
        "only_in_a": [_kernel(kernel) for kernel in found.only_in_a],
        "only_in_b": [_kernel(kernel) for kernel in found.only_in_b],
    }


def _report(report: ComparedReport) -> dict[str, Any]:
    return {
        "path": base_name(report.path),
        "sha256": report.sha256,
        "tool": report.tool,
        "tool_version": report.tool_version,
        "clock_control": report.clock_control,
        "cache_control": report.cache_control,
        "replay_mode": report.replay_mode,
        "complete": report.complete,
    }


def _json_pair(pair: KernelPair) -> dict[str, Any]:
    return {
        "is_draft": pair.is_draft,
        "is_comparable": pair.is_comparable,
        "matched_by": pair.matched_by,
        "a": _kernel(pair.a),
        "b": _kernel(pair.b),
        "context": [{"name": f.name, "a": f.a, "b": f.b, "state": f.state} for f in pair.context],
        "changes": [_change(change) for change in pair.changes],
        "stalls": [_change(change) for change in pair.stalls],
        "notes": list(pair.notes),
    }


def _kernel(kernel: ComparedKernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "name_full": kernel.name_full,
        "report": base_name(kernel.report.path),
        "chip": kernel.chip,
        "device_ordinal": kernel.device_ordinal,
        "grid": None if kernel.grid is None else list(kernel.grid),
        "block": None if kernel.block is None else list(kernel.block),
        "launches": kernel.launches,
        "duration_ns": kernel.quantities.get("duration_ns"),
        "bound": kernel.bound,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "quantity": change.quantity,
        "unit": change.unit,
        "a": change.a,
        "b": change.b,
        "ratio": change.ratio,
        "difference": change.difference,
        "why_not": change.why_not,
    }
