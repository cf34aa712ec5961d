"""The rules are data: they are validated, and a new one needs no code."""

from __future__ import annotations

import io

import msgspec
import pytest

from solscope.capture.diagnosis import Evidence, diagnose
from solscope.capture.diagnosis.knowledge import (
    BadKnowledge,
    Condition,
    Knowledge,
    Pattern,
    Topic,
    load,
)
from solscope.capture.diagnosis.options import OPTIONS, RELEASES

NEW_RULE = """
topic = "ours"
about = "A fault of our own tool."

[[template]]
id = "warp-core"
level = "error"
means = "the warp core is cold"
match = ["warp core at {celsius:int} degrees"]

[[cause]]
id = "cold-core"
role = "cause"
title = "The core has {warp-core.celsius} degrees"
all = ["warp-core.celsius < 10"]
why = ["It needs ten."]
remedies = ["warm it"]
sources = ["us"]
"""


def topic(text: str) -> Topic:
    return msgspec.toml.decode(text, type=Topic)


def test_a_rule_is_added_as_data_alone() -> None:
    knowledge = Knowledge([*load().topics, topic(NEW_RULE)])
    log = io.BytesIO(b"==ERROR== warp core at 7 degrees\n")
    found = diagnose([Evidence(name="x.log", stream=log)], knowledge=knowledge)
    assert (found.code, found.summary) == ("cold-core", "The core has 7 degrees")
    warm = io.BytesIO(b"==ERROR== warp core at 70 degrees\n")
    assert not diagnose([Evidence(name="x.log", stream=warm)], knowledge=knowledge).causes


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('all = ["warp-core.celsius < 10"]', 'all = ["no-such-fact"]', "no fact is called"),
        ('all = ["warp-core.celsius < 10"]', 'all = ["warp-core.kelvin"]', "has no 'kelvin'"),
        ('all = ["warp-core.celsius < 10"]', "", "needs a condition"),
        ('all = ["warp-core.celsius < 10"]', 'all = ["warp core"]', "not understood"),
        ("{warp-core.celsius} degrees", "{warp-core.kelvin} degrees", "no field of a fact"),
        ('remedies = ["warm it"]', 'hides = ["nothing"]', "no cause"),
        ('match = ["warp core at {celsius:int} degrees"]', 'match = ["{celsius:int}"]', "literal"),
        ('match = ["warp core at {celsius:int} degrees"]', "match = []", "needs a pattern"),
        (
            'means = "the warp core is cold"',
            'means = "x"\nunless = ["warp core"]',
            "excludes itself",
        ),
    ],
)
def test_a_wrong_rule_is_refused_with_its_name(old: str, new: str, complaint: str) -> None:
    assert old in NEW_RULE
    with pytest.raises(BadKnowledge, match=complaint):
        Knowledge([topic(NEW_RULE.replace(old, new))])


def test_an_unknown_key_in_the_data_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="remedy"):
        topic(NEW_RULE.replace("remedies", "remedy"))


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(BadKnowledge, match="share an id"):
        Knowledge([topic(NEW_RULE), topic(NEW_RULE)])


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("a.b", "x", True),
        ("a.b = 0", "0", True),
        ("a.b != 0", "0", False),
        ("a.b ~ ^re", "regex", True),
        ("a.b !~ ^re", "regex", False),
        ("a.b < 2023.3", "2022.4.1", True),
        ("a.b >= 2023.3", "2023.3.0", True),
        ("a.b <= 580", "580", True),
        ("a.b > 9", "10", True),  # numbers, not letters
        ("a.b > 9", "many", False),
        ("a.c = 0", "0", False),  # another field is absent, and absent is no match
    ],
)
def test_a_condition_compares(condition: str, value: str, holds: bool) -> None:
    assert Condition(condition).holds({"b": value}) is holds


def test_placeholders_keep_what_they_are_named_for() -> None:
    pattern = Pattern('Failed to profile "{kernel:quoted}" in process {pid:int}')
    assert pattern.match("==ERROR== failed to profile “a b” in process 1,024") == {
        "kernel": "a b",
        "pid": "1,024",
    }


def test_every_cause_says_why_and_names_sources() -> None:
    for cause in load().causes.values():
        assert cause.why, cause.id
        assert cause.sources, cause.id
        if cause.role == "suspect":
            assert cause.checks, f"{cause.id} is undecided and names no check"
        if cause.role in ("cause", "advice"):
            remedies = [*cause.remedies, *(r for clause in cause.also for r in clause.remedies)]
            assert remedies, f"{cause.id} has no remedy"


def test_nothing_profiled_is_a_consequence_and_never_a_ground_alone() -> None:
    assert load().templates["no-kernels-profiled"].is_consequence
    for cause in load().causes.values():
        grounds = {text.split(".")[0] for text in (*cause.all, *cause.any)}
        assert grounds != {"no-kernels-profiled"}, cause.id


def test_the_tables_of_options_and_releases_are_in_order() -> None:
    assert OPTIONS["target-processes"].takes_value
    assert not OPTIONS["nvtx"].takes_value
    assert OPTIONS["attach"].never
    assert [r.ncu for r in RELEASES] == sorted(r.ncu for r in RELEASES)
