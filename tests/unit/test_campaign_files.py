"""What people wrote is read with its faults named: rubric, context, findings, hand-off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.campaigns import CONTEXT

from solscope.errors import ReportError
from solscope.evidence.campaign import config, context, findings, handoff
from solscope.model.campaign import FindingStatus

ARM = {"K": 4, "R": 1, "H": 4, "P": 4, "A": 1, "name": "a library"}


def rubric(candidate: Any, baseline: Any = ARM) -> tuple[str, ...]:
    return config.parse(
        {"name": "x", "krhpa": {"candidate": candidate, "baseline": baseline}}, "config.yaml"
    ).krhpa_problems


def test_both_arms_are_read() -> None:
    found = config.parse({"name": "x", "krhpa": {"candidate": ARM, "baseline": ARM}}, "c")
    assert found.krhpa_problems == ()
    assert found.candidate is not None
    assert found.candidate.text() == "K4/R1/H4/P4/A1"


@pytest.mark.parametrize(
    ("candidate", "problem"),
    [
        (None, "krhpa.candidate is missing"),
        ({**ARM, "H": 5}, "H is 5"),
        ({**ARM, "H": 0}, "H is 0"),
        ({**ARM, "H": "4"}, "H is '4'"),
        ({**ARM, "H": True}, "H is True"),
        ({**ARM, "H": 2.5}, "H is 2.5"),
        ({k: v for k, v in ARM.items() if k != "P"}, "P is missing"),
        ({**ARM, "name": " "}, "name is missing"),
        ({**ARM, "kernel": 3}, "kernel is not text"),
    ],
)
def test_a_malformed_arm_is_named_and_never_raised(candidate: Any, problem: str) -> None:
    assert any(problem in said for said in rubric(candidate))


def test_a_rubric_that_is_no_mapping_or_names_another_arm_is_a_problem() -> None:
    assert config.parse({"name": "x", "krhpa": "K4"}, "c").krhpa_problems
    given = {"candidate": ARM, "baseline": ARM, "other": ARM}
    assert config.parse({"name": "x", "krhpa": given}, "c").krhpa_problems == (
        "krhpa.other is no arm",
    )


def test_a_blank_exemption_is_none() -> None:
    assert config.parse({"name": "x", "krhpa_exempt_reason": "  "}, "c").krhpa_exempt_reason is None


def test_a_complete_context_lacks_nothing_and_one_field_less_is_named() -> None:
    document: dict[str, Any] = {}
    for name, value in CONTEXT.values():
        section, _, key = name.partition(".")
        document.setdefault(section, {})[key] = value
    document["grounding"]["trials"] = {
        "n": 5,
        "mean": 12.1,
        "std": 0.3,
        "quantity": "TPOT",
        "unit": "ms",
    }
    assert context.parse(document) == CONTEXT
    del document["regime"]["tier"]
    assert context.parse(document).missing() == ("regime.tier",)


def a_trial(**changes: Any) -> dict[str, Any]:
    return {"n": 5, "mean": 12.1, "std": 0.3, "quantity": "TPOT", "unit": "ms", **changes}


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"workload": {"concurrency": "1-64"}}, "workload.concurrency"),
        ({"workload": {"input_tokens": [1024, 4096]}}, "workload.input_tokens"),
        ({"workload": {"concurrency": True}}, "workload.concurrency"),
        ({"grounding": {"sol_rigor": "L5"}}, "grounding.sol_rigor"),
        ({"grounding": {"trials": {"n": 3}}}, "grounding.trials"),
        ({"regime": {"state": "hot"}}, "regime.state"),
        ({"identity": {"model": "  "}}, "identity.model"),
        ({"identity": {"colour": "red"}}, "identity.colour"),
        ({"workload": {"concurrency": -64}}, "workload.concurrency"),
        ({"workload": {"output_tokens": float("nan")}}, "workload.output_tokens"),
        ({"workload": {"num_prompts": 0}}, "workload.num_prompts"),
        ({"parallelism": {"tensor": 0}}, "parallelism.tensor"),
        ({"serving": {"gpu_memory_utilization": 90}}, "serving.gpu_memory_utilization"),
        ({"grounding": {"trials": a_trial(n=0)}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(std=-1.0)}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(mean=float("inf"))}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(unit=" ")}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(unit="TBD")}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(quantity="?")}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(mean=0.0)}}, "grounding.trials"),
        ({"grounding": {"trials": a_trial(mean=-12.0)}}, "grounding.trials"),
        ({"grounding": {"baseline": "none"}}, "grounding.baseline"),
        ({"identity": {"model": "TBD"}}, "identity.model"),
        ({"stack": {"image": "unknown"}}, "stack.image"),
        ({"identity": {"quantization": "??"}}, "identity.quantization"),
        ({"identity": "toy"}, "identity"),
        ({"novel": 1}, "novel"),
    ],
)
def test_a_value_that_cannot_be_taken_is_refused_by_name(
    document: dict[str, Any], name: str
) -> None:
    found = context.parse(document)
    assert name in found.refused
    assert dict(found.values()).get(name) is None


def test_none_is_an_answer_where_there_may_be_none() -> None:
    stated = {"identity": {"quantization": "none"}, "parallelism": {"strategy": "none"}}
    assert not context.parse(stated).refused


@pytest.mark.parametrize("reason", ["TBD", "n/a", "-", "None."])
def test_an_exemption_that_gives_no_reason_is_a_problem(reason: str) -> None:
    found = config.parse({"name": "x", "krhpa_exempt_reason": reason}, "c")
    assert found.krhpa_exempt_reason is None
    assert "gives no reason" in found.krhpa_problems[0]
    assert config.parse({"name": "x", "wall": reason}, "c").wall is None


@pytest.mark.parametrize(
    "document",
    [
        "grounding:\n  trials: {n: 1, mean: 1, n: 3}\n",
        "workload: {concurrency: 1}\nregime: {}\nworkload: {concurrency: 64}\n",
        "stack:\n- {a: 1, a: 2}\n",
    ],
)
def test_a_name_that_stands_twice_is_refused(tmp_path: Path, document: str) -> None:
    path = tmp_path / "context.yaml"
    path.write_text(document)
    with pytest.raises(ReportError, match="stands twice in one mapping"):
        context.read(path)


def test_what_is_merged_may_be_overruled(tmp_path: Path) -> None:
    path = tmp_path / "context.yaml"
    path.write_text(
        "workload: &base {dataset: random, concurrency: 1}\n"
        "extra: {workload: {<<: *base, concurrency: 64}, other: {<<: *base}}\n"
    )
    assert context.read(path).workload.concurrency == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("stack: {version: 0.10}", "text is expected, and this is 0.1: put it in quotes"),
        ("identity: {quantization: no}", "text is expected, and this is false: put it in quotes"),
        ("identity: {model: 2026-01-02}", "and this is 2026-01-02: put it in quotes"),
        # YAML 1.1 reads these as 8 and 90.
        ("parallelism: {tensor: 010}", "a whole number is expected, and this is '010'"),
        ("workload: {concurrency: 1:30}", "a whole number is expected, and this is '1:30'"),
        ("serving: {gpu_memory_utilization: 1:30.5}", "a number is expected, and this is '1:30.5'"),
    ],
)
def test_what_yaml_turns_around_is_refused_with_what_to_do(
    tmp_path: Path, line: str, words: str
) -> None:
    path = tmp_path / "context.yaml"
    path.write_text(line)
    assert words in "".join(context.read(path).refused.values())


def test_a_value_that_contains_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "context.yaml"
    path.write_text("other: &a [*a]")
    with pytest.raises(ReportError, match="contains itself"):
        context.read(path)


def test_aliases_of_aliases_are_looked_at_once(tmp_path: Path) -> None:
    lines = ["l0: &l0 [x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 40)]
    path = tmp_path / "context.yaml"
    path.write_text("\n".join(lines))
    assert context.read(path).identity.model is None


def test_what_a_capture_wrote_lies_under_what_people_wrote() -> None:
    found = context.parse({"model": "a", "engine": "vllm", "identity": {"model": "b"}})
    assert found.identity.model == "b"
    assert found.stack.engine == "vllm"
    assert found.refused == {}


def test_a_number_that_the_capture_saw_is_not_stated_otherwise() -> None:
    found = context.parse({"concurrency": 64, "workload": {"concurrency": 1, "num_prompts": 8}})
    assert found.workload.concurrency is None
    assert found.workload.num_prompts == 8
    assert found.refused["workload.concurrency"] == "1 is stated, and the capture says 64"
    assert not context.parse({"concurrency": 64, "workload": {"concurrency": 64}}).refused


FINDING = "{id: a, title: t, status: not done, next_lever: do it}"


def read_findings(folder: Path, *rows: str) -> Any:
    path = folder / "value-findings.yaml"
    path.write_text("findings:\n" + "".join(f"- {row}\n" for row in rows))
    return findings.read(path)


def test_findings_are_read_in_order(tmp_path: Path) -> None:
    closed = "{id: b, title: t, status: closed negative, next_lever: other, why: slower by 2 %}"
    found = read_findings(tmp_path, FINDING, closed)
    assert [f.status for f in found] == [FindingStatus.NOT_DONE, FindingStatus.CLOSED_NEGATIVE]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{id: a, title: t, status: not done}", "next_lever"),
        ("{id: ' ', title: t, status: not done, next_lever: x}", "no id or no title"),
        ("{id: a, title: ' ', status: not done, next_lever: x}", "no id or no title"),
        ("{id: a, title: t, status: in progress, next_lever: none}", "its next_lever is 'none'"),
        ("{id: a, title: t, status: not done, next_lever: ' '}", "has no next_lever"),
        ("{id: a, title: t, status: maybe, next_lever: x}", "status|Invalid"),
        ("{id: a, title: t, status: closed negative, next_lever: x}", "does not say why"),
        ("{id: a, title: t, status: closed negative, next_lever: x, why: TBD}", "not say why"),
        ("{id: a, title: t, status: done, next_lever: x, cost: huge}", "costs are"),
        ("{id: a, title: t, status: done, next_lever: x, max_win: 3}", "no share"),
        ("{id: a, title: t, status: done, next_lever: x, color: red}", "color"),
    ],
)
def test_a_finding_with_a_fault_is_refused(tmp_path: Path, row: str, why: str) -> None:
    with pytest.raises(ReportError, match=why):
        read_findings(tmp_path, row)


def test_the_same_finding_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="twice"):
        read_findings(tmp_path, FINDING, FINDING)


def test_a_hand_off_keeps_what_people_wrote_around_our_part() -> None:
    first = handoff.merged(None, "Decode", "old frontier")
    assert first.startswith("# Decode\n")
    edited = f"above\n\n{first}\nbelow\n"
    again = handoff.merged(edited, "Decode", "new frontier")
    assert again.startswith("above\n")
    assert again.endswith("below\n")
    assert "new frontier" in again
    assert "old frontier" not in again
    assert handoff.merged(again, "Decode", "new frontier") == again


def test_a_hand_off_that_is_wholly_peoples_gets_our_part_below() -> None:
    merged = handoff.merged("# mine\n\nnotes\n", "Decode", "ours")
    assert merged.startswith("# mine\n\nnotes\n")
    assert handoff.BEGIN in merged


def test_a_hand_off_whose_end_mark_was_lost_loses_no_word() -> None:
    torn = f"# mine\n\n{handoff.BEGIN}\n\nprecious\n"
    once = handoff.merged(torn, "Decode", "ours")
    assert "precious" in once
    twice = handoff.merged(once, "Decode", "newer")
    assert "precious" in twice
    assert "ours" not in twice
