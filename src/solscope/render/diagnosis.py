"""A diagnosis as text for the terminal, as Markdown for an issue, as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.diagnosis import DIAGNOSIS_SCHEMA, Cause, Diagnosis, Outcome, Role

LEAST_WIDTH = 50
WIDEST = 110
FULL_CAUSES = 4

_LABELS = {
    Role.CAUSE: "cause",
    Role.SUSPECT: "suspect",
    Role.ADVICE: "remark",
    Role.WELL: "well",
    Role.HARMLESS: "harmless",
}


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis by the schema ``solscope.diagnosis/1``, indented."""
    import msgspec

    document: dict[str, Any] = {"schema": DIAGNOSIS_SCHEMA, **msgspec.to_builtins(diagnosis)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def table(diagnosis: Diagnosis, *, width: int = 100, color: bool = False) -> str:
    """The diagnosis as text, wrapped to the width."""
    width = max(LEAST_WIDTH, min(width, WIDEST))
    lines = [_bold(line, color) for line in textwrap.wrap(_headline(diagnosis), width)]
    for number, cause in enumerate(diagnosis.causes, 1):
        lines.append("")
        if number <= FULL_CAUSES:
            lines += _cause(cause, number, width, color)
        else:
            lines += _wrapped(f"{number}. ", f"{cause.title} [{cause.code}]", width)
    if diagnosis.outcome is Outcome.UNDECIDED:
        checks = [c for c in diagnosis.checks if not any(c in k.checks for k in diagnosis.causes)]
        for check in checks:
            lines += ["", *_wrapped("check  ", check.do, width)]
            lines += _wrapped("    => ", check.decides, width)
    lines += _rest(diagnosis, width)
    return "\n".join(lines)


def _headline(diagnosis: Diagnosis) -> str:
    """What it comes to, without repeating the causes that follow."""
    if diagnosis.outcome is Outcome.CAUSE:
        faults = sum(c.role is not Role.ADVICE for c in diagnosis.causes)
        remarks = len(diagnosis.causes) - faults
        parts = [_count(faults, "cause")] if faults else []
        parts += [_count(remarks, "remark")] if remarks else []
        return " and ".join(parts) + (", the first in time leads:" if faults > 1 else ":")
    if diagnosis.outcome is Outcome.WELL:
        return "All is well."
    return diagnosis.summary if not diagnosis.causes else "Undecided. The next check decides:"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bold(text: str, color: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if color else text


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cause(cause: Cause, number: int, width: int, color: bool) -> Iterator[str]:
    label = "" if cause.role is Role.CAUSE else f"{_LABELS[cause.role]}: "
    head = _wrapped(f"{number}. ", f"{cause.title} [{label}{cause.code}]", width)
    yield from (_bold(line, color) for line in head)
    for fact in cause.evidence:
        yield from _wrapped("   seen   ", f"{fact.where}  {fact.text}", width)
    for text in cause.why:
        yield from _wrapped("   why    ", text, width)
    for text in cause.remedies:
        yield from _wrapped("   do     ", text, width)
    for check in cause.checks:
        yield from _wrapped("   check  ", check.do, width)
        yield from _wrapped("       => ", check.decides, width)


def _rest(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    for cause in diagnosis.harmless:
        yield ""
        label = "Harmless: " if any(f.is_timed for f in cause.evidence) else "Note:     "
        yield from _wrapped(label, cause.title + ".", width)
        for text in cause.why:
            yield from _wrapped("          ", text, width)
        for fact in cause.evidence[:1]:
            yield from _wrapped("   seen   ", f"{fact.where}  {fact.text}", width)
    if diagnosis.consequences and diagnosis.causes:
        told = ", ".join(f"{what} ({count}x)" for what, count in diagnosis.consequences)
        yield ""
        yield from _wrapped("Only consequences: ", told, width)
    for line in diagnosis.unknown:
        yield ""
        yield from _wrapped("Unknown line: ", f"{line.where}  {line.text}", width)
        if line.nearest:
            near = f"nearest known ({line.likeness:.0%} alike): {line.nearest}"
            yield from _wrapped("              ", near, width)


def markdown(diagnosis: Diagnosis) -> str:
    """The diagnosis as Markdown, to paste into an issue. Quoted lines stand in code spans."""
    lines = [f"**{escape(diagnosis.summary)}**", ""]
    for number, cause in enumerate(diagnosis.causes, 1):
        lines.append(f"{number}. **{escape(cause.title)}** (`{cause.code}`, {cause.role.value})")
        lines += [f"   - seen: {code(f.where)}: {code(f.text)}" for f in cause.evidence]
        lines += [f"   - why: {escape(text)}" for text in cause.why]
        lines += [f"   - do: {escape(text)}" for text in cause.remedies]
        lines += [f"   - check: {escape(c.do)}: {escape(c.decides)}" for c in cause.checks]
    if diagnosis.outcome is Outcome.UNDECIDED and not diagnosis.causes:
        lines += [f"- check: {escape(c.do)}: {escape(c.decides)}" for c in diagnosis.checks]
    lines += _section(
        "Harmless, and notes",
        [f"{escape(c.title)}. {escape(' '.join(c.why))}" for c in diagnosis.harmless],
    )
    lines += _section(
        "Only consequences",
        [f"{escape(what)} ({count}x)" for what, count in diagnosis.consequences],
    )
    lines += _section(
        "Unknown lines", [f"{code(u.where)}: {code(u.text)}" for u in diagnosis.unknown]
    )
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"{title}:", "", *(f"- {item}" for item in items)] if items else []


def code(text: str) -> str:
    """A code span, whatever the text holds."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def escape(text: str) -> str:
    """Text that Markdown shows as it is; `code` in it stays code.

    >>> escape("a <b> *c*, `d <e>`")
    'a \\\\<b> \\\\*c\\\\*, `d <e>`'
    """
    parts = text.split("`")
    plain = len(parts) % 2 == 0
    for index, part in enumerate(parts):
        if plain or index % 2 == 0:
            for sign in "\\*_<|[]":
                part = part.replace(sign, "\\" + sign)
            parts[index] = part
    return "`".join(parts)
