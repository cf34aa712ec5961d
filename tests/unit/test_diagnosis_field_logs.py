"""Logs as they come from the field: other releases' wording, other tools, other ways to arrive."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from solscope.capture.diagnosis import Evidence, diagnose, framing
from solscope.model.diagnosis import Diagnosis

LOGS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "field_logs.toml").read_text(encoding="utf-8")
)["log"]

HELD = (
    "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other "
    "tool (like DCGM) is concurrently collecting profiling data."
)
RUN = [
    "==PROF== Connected to process 7 (/usr/bin/python3.12)",
    HELD,
    "==ERROR== a complaint that nobody knows",
    '==ERROR== Failed to profile "flash_fwd" in process 7',
    "==WARNING== No kernels were profiled.",
]


def of(text: str) -> Diagnosis:
    return diagnose([Evidence(name="field.log", text=text)])


def told(log: dict[str, Any]) -> Diagnosis:
    evidence = [Evidence(name="field.log", text=log["text"])] if "text" in log else []
    if "command" in log:
        evidence.append(Evidence(name="--command", text=log["command"], is_command=True))
    return diagnose(evidence, version=log.get("ncu"))


def first(found: Diagnosis) -> str:
    """The code of what leads: a cause, else a harmless line, else the answer itself."""
    shown = found.causes or found.harmless
    return shown[0].code if shown else found.code


@pytest.mark.parametrize("log", LOGS, ids=[log["name"] for log in LOGS])
def test_a_log_of_the_field_gets_its_answer(log: dict[str, Any]) -> None:
    found = told(log)
    assert (first(found), found.outcome.value) == (log["code"], log["outcome"])


@pytest.mark.parametrize("log", LOGS, ids=[log["name"] for log in LOGS])
def test_evidence_stands_on_the_line_that_it_names(log: dict[str, Any]) -> None:
    lines = log.get("text", "").splitlines()
    for cause in told(log).causes:
        for fact in cause.evidence:
            name, _, number = fact.where.rpartition(":")
            if name != "field.log" or not number.isdigit() or not fact.is_timed:
                continue  # a document's field, or a part of a command
            shown = " ".join(re.split(r"[<~]", fact.text)[0][:25].split())
            segments = list(framing.segments(lines[int(number) - 1]))
            assert any(shown in " ".join(s.split()) for s in segments), fact


DELIVERED = {
    "plain": lambda n, line: line,
    "kubectl": lambda n, line: f"[pod/llama-0/vllm] 2026-01-02T03:04:{n:02d}.123456789Z {line}",
    "cri": lambda n, line: f"2026-01-02T03:04:{n:02d}.1+00:00 stderr F {line}",
    "compose": lambda n, line: f"vllm-1  | {line}",
    "journal": lambda n, line: f"Jan 02 03:04:{n:02d} node-3 vllm[41]: {line}",
    "torchrun": lambda n, line: f"[rank1]: {line}",
    "mpirun": lambda n, line: f"[1,3]<stderr>:{line}",
    "vllm": lambda n, line: f"(EngineCore_0 pid=77) {line}",
    "docker": lambda n, line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "t"}),
    "journald": lambda n, line: json.dumps({"_PID": "7", "MESSAGE": line}),
    "structured": lambda n, line: json.dumps({"level": "info", "msg": "ncu", "stderr": line}),
    "coloured": lambda n, line: f"\x1b[33m{line}\x1b[0m",
    "progress": lambda n, line: f"Loading:  {n}0% |##    | 1/4 [00:01<00:03]\r{line}",
}


@pytest.mark.parametrize("way", DELIVERED)
def test_the_way_by_which_a_log_arrives_changes_nothing(way: str) -> None:
    found = of("\n".join(DELIVERED[way](n, line) for n, line in enumerate(RUN)))
    assert [c.code for c in found.causes] == ["counters-held-by-other-client"]
    assert found.causes[0].evidence[0].where == "field.log:2"
    assert [line.text for line in found.unknown] == [RUN[2]]
    assert found.unknown[0].where == "field.log:3"
    assert dict(found.consequences).keys() == {
        "a launch could not be profiled",
        "nothing was profiled",
    }


@pytest.mark.parametrize("way", ["docker", "journald", "structured"])
def test_one_record_alone_is_a_line_and_no_document(way: str) -> None:
    found = of(DELIVERED[way](1, RUN[2]))
    assert [line.text for line in found.unknown] == [RUN[2]]


def test_a_list_of_records_still_shows_what_is_unknown() -> None:
    found = of(json.dumps([{"line": line, "timestamp": n} for n, line in enumerate(RUN)]))
    assert found.code == "counters-held-by-other-client"
    assert [line.where for line in found.unknown] == ["field.log:[2].line"]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
@pytest.mark.parametrize("in_words", [True, False], ids=["in-words", "between-words"])
def test_a_terminal_that_broke_the_lines_changes_nothing(width: int, in_words: bool) -> None:
    lines: list[str] = []
    for line in RUN:
        if in_words:
            lines += [line[at : at + width] for at in range(0, len(line), width)]
        else:
            lines += textwrap.wrap(line, width, break_long_words=True)
    found = of("\n".join(lines))
    assert [c.code for c in found.causes] == ["counters-held-by-other-client"]
    assert "nothing was profiled" in dict(found.consequences)


def test_a_broken_progress_line_is_one_finished_launch() -> None:
    found = of(
        '==PROF== Profiling "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_re\n'
        'lu_bf16_256x128_32x3_tn_align8>(T1::Params)" - 0: 0%....50%....100% - 9 passes\n'
        "==PROF== Disconnected from process 7\n"
    )
    assert found.summary.startswith("The capture succeeded: 1 launch(es)")


def test_lines_of_the_program_are_not_taken_for_the_rest_of_a_message() -> None:
    """The second line alone would be a message; behind the first it is not its end."""
    found = of("==ERROR== something odd happened\nstep 3: InternalError of our own\n")
    assert found.code == "unknown-error-line"
    assert [line.text for line in found.unknown] == ["==ERROR== something odd happened"]


def test_a_hint_that_follows_every_failure_is_no_cause() -> None:
    hint = (
        "==WARNING== Profiling kernels launched by child processes requires the "
        "--target-processes all option."
    )
    alone = of(f"==PROF== Connected to process 7 (/usr/bin/env)\n{RUN[4]}\n{hint}")
    assert alone.code == "kernels-in-child-process"
    after = of(
        f"{RUN[0]}\n==ERROR== Error: Failed to prepare kernel for profiling\n{RUN[4]}\n{hint}"
    )
    assert [c.code for c in after.causes] == ["driver-libraries-incomplete-or-skew"]
    ended = of(f"{RUN[0]}\n==ERROR== The application returned an error code (1).\n{RUN[4]}\n{hint}")
    assert [c.code for c in ended.causes] == ["kernels-perhaps-in-child-process"]


EVENTS = (
    "Warning  FailedScheduling  0/4 nodes are available: 4 Insufficient nvidia.com/gpu.\n"
    'Warning  Failed  Failed to pull image "ncu:1": rpc error: code = Unavailable\n'
)
PULLED = (
    '  Normal   Pulled            1m  kubelet            Successfully pulled image "ncu:1" in 50s\n'
)


def test_trouble_that_passed_leads_no_diagnosis() -> None:
    found = of(EVENTS + PULLED + "\n".join(RUN))
    assert [c.code for c in found.causes] == ["counters-held-by-other-client"]
    passed = {c.code: c for c in found.harmless}
    assert passed.keys() == {"no-free-gpu", "image-pull-broken"}
    assert passed["image-pull-broken"].title == "The image cannot be pulled (it passed)"
    assert "field.log:3" in passed["image-pull-broken"].why[-1]


def test_trouble_that_stays_or_comes_back_is_a_cause() -> None:
    assert [c.code for c in of(EVENTS).causes] == ["no-free-gpu", "image-pull-broken"]
    assert of(PULLED + EVENTS).code == "no-free-gpu"


def test_what_another_file_says_is_not_later() -> None:
    """The order of files is that of the command line, not of time."""
    found = diagnose(
        [Evidence(name="events.txt", text=EVENTS), Evidence(name="ncu.log", text="\n".join(RUN))]
    )
    assert "image-pull-broken" in [c.code for c in found.causes]


def test_where_nothing_is_known_the_lines_that_look_like_complaints_are_shown() -> None:
    found = of(
        "starting\nINFO: error rate 0\nptxas fatal   : Value 'sm_103a' is not defined\n"
        "Warning  FailedMount  no such thing\nour.tool.OddError: no luck\nbye\n"
    )
    assert found.code == "nothing-recognised"
    assert [line.where for line in found.unknown] == ["field.log:3", "field.log:4", "field.log:5"]
    assert all(line.nearest is None for line in found.unknown)
    assert found.summary.endswith("only complaints of another one")
    assert of("hello\nworld\n").unknown == ()


def test_complaints_of_other_tools_are_not_shown_beside_a_known_cause() -> None:
    found = of("my tool: error: something\n" + "\n".join(RUN))
    assert [line.text for line in found.unknown] == [RUN[2]]


def test_a_message_whose_quotes_are_escaped_is_the_same_message() -> None:
    found = of(
        'level=error msg="exec failed: exec: \\"bash\\": executable file not found in $PATH"'
    )
    assert found.summary == "The container has no program called bash"
