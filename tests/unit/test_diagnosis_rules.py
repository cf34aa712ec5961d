"""Every rule can be told by facts, and says whole sentences then."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from solscope.capture.diagnosis.judgement import Judge
from solscope.capture.diagnosis.knowledge import (
    FIELD_REFERENCE,
    CauseRule,
    Clause,
    Condition,
    Knowledge,
    Topic,
    load,
)
from solscope.capture.diagnosis.scanning import Facts
from solscope.capture.diagnosis.stated import STATED
from solscope.model.diagnosis import Cause

LOADED = load()
RULES = list(LOADED.causes.values())
EXAMPLES = {r"\bG?B[23]00\b": "NVIDIA B200", r"^-*attach$": "--attach"}


def alone(rule: CauseRule, *, also: tuple[Clause, ...]) -> Judge:
    """A judge that knows this cause only, with these additions."""
    topic = Topic(
        topic="alone",
        about="one cause, and nothing that hides it",
        template=tuple(LOADED.templates.values()),
        cause=(msgspec.structs.replace(rule, hides=(), also=also),),
    )
    return Judge(Knowledge([topic]))


def fields_of(code: str) -> set[str]:
    """The names of a fact's fields."""
    if code in STATED:
        return STATED[code]
    return {name for p in LOADED.patterns[code][0] for name in p.regex.groupindex}


def satisfying(condition: Condition) -> str:
    """A value that the condition accepts."""
    if condition.operator in (None, "!=", "!~"):
        return "7"
    if condition.operator in ("=", "<=", ">="):
        return condition.value
    if condition.operator == "<":
        return "0"
    if condition.operator == ">":
        return "999999"
    if condition.value in EXAMPLES:
        return EXAMPLES[condition.value]
    plain = re.sub(r"\\[bsSwd][+*]?|[\^$()?]", "", condition.value.split("|")[0])
    return re.sub(r"\\(.)", r"\1", plain).replace(".*", " ").replace("[", "").replace("]", "")


def stated(conditions: Iterator[str]) -> Facts:
    """Facts that satisfy the conditions; those on one field of a code stand on facts of their
    own."""
    chosen: list[tuple[str, dict[str, str]]] = []
    for text in conditions:
        condition = LOADED.condition(text)
        wanted = {condition.field: satisfying(condition)} if condition.field else {}
        free = [f for code, f in chosen if code == condition.code and not wanted.keys() & f.keys()]
        if free:
            free[0].update(wanted)
        else:
            chosen.append((condition.code, dict(wanted)))
    facts = Facts()
    for number, (code, fields) in enumerate(chosen, 1):
        filled = {name: fields.get(name, f"some-{name}") for name in fields_of(code)}
        facts.add(code, f"ncu.log:{number}", f"line {number}", filled, is_timed=True)
    return facts


def mentioned(part: CauseRule | Clause) -> Iterator[str]:
    """What must hold: every condition of `all`, the first of `any`."""
    yield from part.all
    yield from part.any[:1]


def texts(cause: Cause) -> Iterator[str]:
    yield cause.title
    yield from cause.why
    yield from cause.remedies
    for check in cause.checks:
        yield check.do
        yield check.decides


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_each_cause_is_told_by_its_facts(rule: CauseRule) -> None:
    (cause,) = alone(rule, also=rule.also).causes(stated(mentioned(rule)))
    assert cause.code == rule.id
    assert cause.evidence
    assert all(text.strip() for text in texts(cause))
    assert not FIELD_REFERENCE.search(" ".join(texts(cause)))
    assert "not stated)" not in cause.title


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_each_addition_of_a_cause_is_told_with_its_own_facts(rule: CauseRule) -> None:
    for clause in rule.also:
        facts = stated(iter([*mentioned(rule), *mentioned(clause)]))
        (plain,) = alone(rule, also=()).causes(facts)
        (cause,) = alone(rule, also=(clause,)).causes(facts)
        assert [*texts(cause)] != [*texts(plain)], clause


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_each_excluding_fact_silences_its_cause(rule: CauseRule) -> None:
    for text in rule.none:
        facts = stated(iter([*mentioned(rule), text]))
        assert alone(rule, also=rule.also).causes(facts) == (), text
