"""``value-findings.yaml``: levers that people found themselves, with where each stands."""

from __future__ import annotations

from pathlib import Path

import msgspec

from solscope.errors import ReportError
from solscope.evidence.campaign import text
from solscope.model.campaign import COSTS, FindingStatus, ValueFinding, is_nothing

_HINT = (
    "each finding needs id, title, status (done, in progress, not done, closed negative) and "
    "next_lever; a closed negative one needs why"
)


_OPEN = (FindingStatus.IN_PROGRESS, FindingStatus.NOT_DONE)


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    title: str
    status: FindingStatus
    next_lever: str
    max_win: float | None = None
    cost: str | None = None
    gate: str | None = None
    why: str | None = None


class _File(msgspec.Struct):
    findings: list[_Row]


def read(path: Path) -> tuple[ValueFinding, ...]:
    """The findings in a file, in its order. Raises UsageError, ReportError naming the key."""
    try:
        wire = msgspec.convert(text.yaml_mapping(path, hint=_HINT), type=_File)
    except msgspec.ValidationError as error:
        raise ReportError(str(error), where=str(path), hint=_HINT) from error
    seen: set[str] = set()
    for row in wire.findings:
        _check(row, seen, str(path))
    return tuple(
        ValueFinding(
            id=row.id,
            title=row.title,
            status=row.status,
            next_lever=row.next_lever.strip(),
            max_win=row.max_win,
            cost=row.cost,
            gate=row.gate,
            why=row.why,
        )
        for row in wire.findings
    )


def _check(row: _Row, seen: set[str], where: str) -> None:
    problem = None
    if row.id in seen:
        problem = "stands twice"
    elif not (row.id.strip() and row.title.strip()):
        problem = "has no id or no title"
    elif not row.next_lever.strip():
        problem = "has no next_lever"
    elif row.status in _OPEN and is_nothing(row.next_lever):
        problem = f"is {row.status.value} and its next_lever is {row.next_lever!r}"
    elif row.status is FindingStatus.CLOSED_NEGATIVE and is_nothing(row.why or ""):
        problem = "is closed negative and does not say why"
    elif row.cost is not None and row.cost not in COSTS:
        problem = f"has cost {row.cost!r}; costs are {', '.join(COSTS)}"
    elif row.max_win is not None and not 0 <= row.max_win <= 1:
        problem = f"has max_win {row.max_win:g}, no share of the whole"
    if problem is not None:
        raise ReportError(f"finding {row.id!r} {problem}", where=where, hint=_HINT)
    seen.add(row.id)
