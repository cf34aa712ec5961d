"""Facts for a plan out of other verbs' files: a preflight, a decode-step budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from solscope.capture.planning.question import Facts
from solscope.errors import UsageError
from solscope.model.finding import Finding, Severity
from solscope.model.plan import Strategy

PREFLIGHT_SCHEMA = "solscope.preflight/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflighted:
    """What a preflight file says that bears on a plan."""

    facts: Facts
    chip: str | None
    strategy: Strategy | None
    reason: str | None
    findings: tuple[Finding, ...]


def of_preflight(document: Any, *, where: str) -> Preflighted:
    """The facts of a preflight's JSON; what it does not hold stays unknown.

    Raises UsageError for JSON that is no preflight.
    """
    if not isinstance(document, Mapping) or "answer" not in document:
        raise UsageError(
            "not a preflight's answer",
            where=where,
            hint="make one with `solscope preflight ... --format json`",
        )
    node = _first(_at(document, "snapshot", "nodes"))
    engine = _at(document, "snapshot", "engine")
    memory = _number(_value(node, "gpu_memory_bytes"))
    fraction = _number(_value(engine, "memory_fraction"))
    facts = Facts(
        target=_reference(document),
        resident_bytes=None if memory is None or fraction is None else memory * fraction,
        memory_fraction=fraction,
        tensor_parallel=_whole(_at(engine, "tensor_parallel")),
        probe_budget_s=_probe_budget(document),
        sources=("preflight",),
    )
    word = _at(document, "strategy")
    known = {member.value for member in Strategy}
    chip = _value(node, "product") or _value(node, "compute_capability")
    return Preflighted(
        facts=facts,
        chip=None if chip is None else str(chip),
        strategy=Strategy(word) if word in known else None,
        reason=_text(_at(document, "line")),
        findings=tuple(_findings(document)),
    )


def _reference(document: Any) -> str | None:
    kind, name = _at(document, "snapshot", "kind"), _at(document, "snapshot", "name")
    if not kind or not name:
        return None
    namespace = _at(document, "snapshot", "namespace")
    return f"{kind}/{name}" + (f" -n {namespace}" if namespace else "")


def _findings(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Those that forbid: the rest is the preflight's own page."""
    for entry in document.get("findings") or ():
        if isinstance(entry, Mapping) and entry.get("severity") == Severity.BLOCKS.value:
            yield Finding(
                code=str(entry.get("code")),
                severity=Severity.BLOCKS,
                where=str(entry.get("where")),
                fact=str(entry.get("fact")),
                remedy=str(entry.get("remedy")),
                evidence=("preflight",),
            )


def _probe_budget(document: Any) -> float | None:
    name = _at(document, "snapshot", "container")
    for container in _at(document, "snapshot", "template", "containers") or ():
        if name is not None and _at(container, "name") != name:
            continue
        probe = _at(container, "liveness")
        period = _number(_at(probe, "period_s"))
        threshold = _number(_at(probe, "failure_threshold"))
        if period is not None and threshold is not None:
            return period * threshold
    return None


def verdict_of_budget(document: Any, *, where: str) -> str:
    """The verdict of a decode-step budget: ``host-bound``, ``kernel-bound``, ``comm-bound``.

    Raises UsageError where the file holds none.
    """
    for verdict in _verdicts(document):
        word = verdict.strip().lower().replace("_", "-").replace(" ", "-")
        if word.endswith("-bound"):
            return word
    raise UsageError(
        "no budget verdict in this file",
        where=where,
        hint="make one with `solscope budget ... --format json`",
    )


def _verdicts(node: Any) -> Iterator[str]:
    """Every text under a key called ``verdict`` or ``bound``, outermost first."""
    if isinstance(node, Mapping):
        for key in ("verdict", "bound"):
            value = node.get(key)
            if isinstance(value, str):
                yield value
        for value in node.values():
            yield from _verdicts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _verdicts(value)


def _at(node: Any, *path: str) -> Any:
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _value(node: Any, key: str) -> Any:
    """A fact's value: plain, or beside its source."""
    found = _at(node, key)
    return found.get("value") if isinstance(found, Mapping) else found


def _first(node: Any) -> Any:
    return node[0] if isinstance(node, list) and node else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
