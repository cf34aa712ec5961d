"""``config.yaml`` of a campaign. Keys of other tools are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from solscope.errors import ReportError
from solscope.evidence.campaign import text
from solscope.model.campaign import AXES, Arm, CampaignConfig, Claim, NextLever, is_nothing
from solscope.model.context import MeasurementContext

_HINT = "a campaign's config.yaml needs name, and krhpa or krhpa_exempt_reason"
CLAIMS = ("at-roof",)


class _Claim(msgspec.Struct):
    says: str
    kernel: str | None = None
    cell: str | None = None


class _Lever(msgspec.Struct):
    what: str
    unlock: str
    gate: str


class _Config(msgspec.Struct):
    name: str
    description: str = ""
    hw_key: str | None = None
    krhpa_exempt_reason: str | None = None
    claims: list[_Claim] = []
    next_lever: _Lever | None = None
    wall: str | None = None
    end_to_end_share: float | None = None
    varies: list[str] = []
    focus: str | None = None


def read(path: Path) -> CampaignConfig:
    """The config in a file. Raises UsageError, ReportError naming the key.

    A malformed rubric is no error of the file: it is kept as ``krhpa_problems`` for its gate.
    """
    return parse(text.yaml_mapping(path, hint=_HINT), str(path))


def parse(document: Mapping[str, Any], where: str) -> CampaignConfig:
    """The same from a mapping."""
    try:
        wire = msgspec.convert(document, type=_Config)
    except msgspec.ValidationError as error:
        raise ReportError(str(error), where=where, hint=_HINT) from error
    share = wire.end_to_end_share
    if share is not None and not 0 < share <= 1:
        raise ReportError(f"end_to_end_share {share:g} is no share above 0 up to 1", where=where)
    for claim in wire.claims:
        if claim.says not in CLAIMS:
            raise ReportError(
                f"claims: {claim.says!r} is no claim that counters decide",
                where=where,
                hint=f"one of {', '.join(CLAIMS)}",
            )
        _regex(claim.kernel, "claims.kernel", where)
    fields = {name for name, _ in MeasurementContext().values()}
    unknown = [name for name in wire.varies if name not in fields]
    if unknown:
        raise ReportError(
            f"varies: {', '.join(unknown)} is no field of a context",
            where=where,
            hint="write section.field, such as stack.version",
        )
    candidate, baseline, problems = _rubric(document.get("krhpa"), where)
    reason = (wire.krhpa_exempt_reason or "").strip() or None
    if reason is not None and is_nothing(reason):
        problems = (*problems, f"krhpa_exempt_reason is {reason!r}, which gives no reason")
        reason = None
    wall = (wire.wall or "").strip()
    return CampaignConfig(
        name=wire.name,
        description=wire.description,
        hw_key=wire.hw_key,
        candidate=candidate,
        baseline=baseline,
        krhpa_problems=problems,
        krhpa_exempt_reason=reason,
        claims=tuple(Claim(says=c.says, kernel=c.kernel, cell=c.cell) for c in wire.claims),
        next_lever=None
        if wire.next_lever is None
        else NextLever(
            what=wire.next_lever.what, unlock=wire.next_lever.unlock, gate=wire.next_lever.gate
        ),
        wall=None if is_nothing(wall) else wall,
        end_to_end_share=share,
        varies=tuple(wire.varies),
        focus=wire.focus,
    )


def _rubric(given: object, where: str) -> tuple[Arm | None, Arm | None, tuple[str, ...]]:
    if given is None:
        return None, None, ()
    if not isinstance(given, dict):
        return None, None, ("krhpa is not a mapping of candidate and baseline",)
    problems: list[str] = []
    arms: list[Arm | None] = []
    for side in ("candidate", "baseline"):
        found = list(_problems_of(side, given.get(side)))
        problems.extend(found)
        arms.append(None if found else _arm(given[side], where))
    problems.extend(f"krhpa.{key} is no arm" for key in given if key not in _SIDES)
    return arms[0], arms[1], tuple(problems)


_SIDES = ("candidate", "baseline")


def _problems_of(side: str, given: object) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"krhpa.{side} is missing"
        return
    for axis in AXES:
        grade = given.get(axis)
        if grade is None:
            yield f"krhpa.{side}.{axis} is missing"
        elif isinstance(grade, bool) or not isinstance(grade, int) or not 1 <= grade <= 4:
            yield f"krhpa.{side}.{axis} is {grade!r}, not a whole number from 1 to 4"
    name = given.get("name")
    if not isinstance(name, str) or not name.strip():
        yield f"krhpa.{side}.name is missing"
    elif is_nothing(name):
        yield f"krhpa.{side}.name is {name!r}, which names nothing"
    for key in ("cell", "kernel"):
        if given.get(key) is not None and not isinstance(given[key], str):
            yield f"krhpa.{side}.{key} is not text"


def _arm(given: Mapping[str, Any], where: str) -> Arm:
    _regex(given.get("kernel"), "krhpa kernel", where)
    return Arm(
        name=given["name"].strip(),
        axes={axis: given[axis] for axis in AXES},
        cell=given.get("cell"),
        kernel=given.get("kernel"),
    )


def _regex(pattern: str | None, key: str, where: str) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ReportError(f"{key} is not a regular expression: {error}", where=where) from error
