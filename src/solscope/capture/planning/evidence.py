"""Facts for a plan out of other verbs' files: a preflight, a decode-step budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solscope.capture.planning.question import Facts
from solscope.errors import UsageError
from solscope.model.finding import Finding, Severity
from solscope.model.plan import Strategy

BUDGET_VERDICTS = frozenset(
    {"host-bound", "kernel-bound", "comm-bound", "copy-bound", "mixed", "undetermined"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflighted:
    """What a preflight file says that bears on a plan."""

    facts: Facts
    chip: str | None
    strategy: Strategy | None
    reason: str | None
    findings: tuple[Finding, ...]


def of_preflight(document: Any, *, where: str, workload: str | None = None) -> Preflighted:
    """The facts of a preflight's JSON; what it does not hold stays unknown.

    ``workload`` (``kind/name`` or a name) chooses where the file answers for several. Raises
    UsageError for JSON that is no preflight, or where it does not say which workload.
    """
    answer = _chosen(document, where=where, workload=workload)
    engine = _at(answer, "measurement_context", "engine")
    node = _at(answer, "measurement_context", "node")
    memory = _number(_value(node, "gpu_memory_bytes"))
    fraction = _number(_value(engine, "memory_fraction"))
    chip = _value(node, "product") or _value(node, "compute_capability")
    return Preflighted(
        facts=Facts(
            target=_reference(answer),
            resident_bytes=None if memory is None or fraction is None else memory * fraction,
            memory_fraction=fraction,
            engine=_text(_at(engine, "engine")),
            tensor_parallel=_whole(_at(engine, "tensor_parallel")),
            sources=("preflight: GPU memory x the server's fraction of it",),
        ),
        chip=None if chip is None else str(chip),
        strategy=_strategy(answer),
        reason=_reason(answer),
        findings=tuple(_findings(answer)),
    )


def _chosen(document: Any, *, where: str, workload: str | None) -> Mapping[str, Any]:
    """The answer for one workload."""
    hint = "make one with `solscope preflight ... --format json`"
    if not isinstance(document, Mapping):
        raise UsageError("not a preflight's answer", where=where, hint=hint)
    given: Sequence[Any] = document.get("workloads") or [document]
    answers: list[Mapping[str, Any]] = [
        a for a in given if isinstance(a, Mapping) and "answer" in a
    ]
    if not answers:
        raise UsageError("not a preflight's answer", where=where, hint=hint)
    name = (workload or "").rpartition("/")[2]
    named = [a for a in answers if name and _at(a, "target", "name") == name]
    if len(named or answers) == 1:
        return (named or answers)[0]
    names = ", ".join(str(_reference(a)) for a in answers)
    raise UsageError("answers for several workloads", where=where, hint=f"name one of {names}")


def _strategy(answer: Mapping[str, Any]) -> Strategy | None:
    """The preflight's way in; None where it could not decide between them."""
    word = answer.get("strategy")
    known = {member.value for member in Strategy if member is not Strategy.NONE}
    return Strategy(word) if word in known else None


def _reason(answer: Mapping[str, Any]) -> str | None:
    """The answer's line without the way's name, which stands before it."""
    line = _text(_at(answer, "line"))
    return None if line is None else line.removeprefix(f"{answer.get('strategy')}: ")


def _reference(answer: Mapping[str, Any]) -> str | None:
    kind, name = _at(answer, "target", "kind"), _at(answer, "target", "name")
    if not kind or not name:
        return None
    namespace = _at(answer, "target", "namespace")
    return f"{kind}/{name}" + (f" -n {namespace}" if namespace else "")


def _findings(answer: Mapping[str, Any]) -> Iterator[Finding]:
    """Those that forbid, and the questions that are open: the rest is the preflight's page."""
    for entry in answer.get("findings") or ():
        if isinstance(entry, Mapping) and entry.get("severity") == Severity.BLOCKS.value:
            yield Finding(
                code=str(entry.get("code")),
                severity=Severity.BLOCKS,
                where=str(entry.get("where")),
                fact=str(entry.get("fact")),
                remedy=str(entry.get("remedy")),
                evidence=("preflight",),
            )
    questions = [q for q in answer.get("questions") or () if isinstance(q, str)]
    if answer.get("answer") == "undetermined":
        yield Finding(
            code="plan-preflight-undetermined",
            severity=Severity.WARNING,
            where="--preflight",
            fact="the preflight could not decide: " + (_text(answer.get("line")) or ""),
            remedy="; ".join(questions) or "ask what the preflight asks, and plan again",
        )


def verdict_of_budget(document: Any, *, where: str) -> str:
    """The verdict of a decode-step budget, ``mixed`` where its devices disagree.

    Raises UsageError where the file holds none.
    """
    words = [v.strip().lower().replace("_", "-").replace(" ", "-") for v in _verdicts(document)]
    found = [word for word in words if word in BUDGET_VERDICTS]
    if found:
        return found[0] if len(set(found)) == 1 else "mixed"
    raise UsageError(
        "no budget verdict in this file",
        where=where,
        hint="make one with `solscope budget ... --format json`",
    )


def _verdicts(node: Any) -> Iterator[str]:
    """Every text under a key called ``verdict``, outermost first."""
    if isinstance(node, Mapping):
        if isinstance(node.get("verdict"), str):
            yield node["verdict"]
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


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
