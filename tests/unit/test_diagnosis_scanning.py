"""Logs as they really come: coloured, cut, interleaved, huge, of another tool."""

from __future__ import annotations

import io
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from bench import diagnosis as bench

from solscope.capture.diagnosis import Evidence, diagnose
from solscope.model.diagnosis import Diagnosis, Outcome

REFUSED = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0."
)
EMPTY = "==WARNING== No kernels were profiled."


def of(text: str | bytes, name: str = "ncu.log") -> Diagnosis:
    data = text if isinstance(text, bytes) else text.encode()
    return diagnose([Evidence(name=name, stream=io.BytesIO(data))])


def test_the_last_line_of_every_failure_is_never_the_cause() -> None:
    found = of(f"{REFUSED}\n{EMPTY}\n")
    assert found.code == "counter-permission"
    assert [what for what, _ in found.consequences] == ["nothing was profiled"]
    alone = of(f"{EMPTY}\n")
    assert alone.outcome is Outcome.UNDECIDED
    assert alone.causes == ()
    assert alone.checks


@pytest.mark.parametrize(
    "dirty",
    [
        REFUSED.replace("==ERROR==", "\x1b[31m==ERROR==\x1b[0m").replace("ERR_", "\x1b[1mERR_"),
        REFUSED + "\r",
        "\ufeff" + REFUSED,
        REFUSED.replace(" - ", " \t-  "),
        "[rank3]: " + REFUSED,
        "2026-01-02T03:04:05.6Z stderr F " + REFUSED,
        "0%....50%" + REFUSED,
        "Command output: ==PROF== Connected to process 9 (python3)\\n" + REFUSED + "\\n",
        REFUSED[:45],
        REFUSED.lower(),
    ],
    ids=["ansi", "crlf", "bom", "blanks", "rank", "cri", "split", "escaped", "cut", "lower"],
)
def test_a_dirty_line_means_what_the_clean_one_means(dirty: str) -> None:
    assert of(dirty + "\n" + EMPTY).code == "counter-permission"


def test_a_log_in_utf_16_is_read() -> None:
    assert of(b"\xff\xfe" + (REFUSED + "\r\n").encode("utf-16-le")).code == "counter-permission"


def test_evidence_names_file_and_line() -> None:
    found = of("x\n" * 99 + REFUSED + "\n")
    assert found.causes[0].evidence[0].where == "ncu.log:100"


def test_line_numbers_hold_across_blocks_of_a_large_file() -> None:
    filler = b"INFO engine.py:12] nothing to see here at all\n"
    before = 60_000  # 2.8 MB: three blocks
    found = of(filler * before + REFUSED.encode() + b"\n" + filler * 10)
    assert found.causes[0].evidence[0].where == f"ncu.log:{before + 1}"


def test_the_first_cause_in_time_leads() -> None:
    driver = "==ERROR== Nsight Compute failed to connect to the CUDA driver"
    output = "==ERROR== Unable to write to file x.ncu-rep. Please verify this file is not locked."
    assert [c.code for c in of(f"{driver}\n{output}\n").causes] == [
        "stub-libcuda-or-no-driver",
        "output-dir-not-writable",
    ]
    assert [c.code for c in of(f"{output}\n{driver}\n").causes] == [
        "output-dir-not-writable",
        "stub-libcuda-or-no-driver",
    ]


def test_eight_ranks_writing_at_once_are_told_apart_from_the_fault_of_one() -> None:
    ranks = [
        [
            f"==PROF== Connected to process {100 + rank} (/usr/bin/python3.12)",
            f'==PROF== Profiling "gemm_{rank}" - {rank}: 0%....50%....100% - 8 passes',
            f"==PROF== Disconnected from process {100 + rank}",
        ]
        for rank in range(8)
    ]
    ranks[5][1:2] = ["==ERROR== Profiling failed because a driver resource was unavailable."]
    order = random.Random(7)
    lines = []
    while any(ranks):
        queue = order.choice([r for r in ranks if r])
        lines.append(queue.pop(0))
    assert of("\n".join(lines)).code == "counters-held-by-other-client"


def test_a_progress_line_split_by_the_application_is_still_a_finished_launch() -> None:
    found = of('==PROF== Profiling "k" - 0: 0%step 12 loss 0.4\n....50%....100% - 8 passes\n')
    assert found.outcome is Outcome.WELL


def test_binary_rubbish_is_no_diagnosis_and_no_crash() -> None:
    rubbish = random.Random(1).randbytes(3_000_000)
    found = of(rubbish)
    assert found.outcome is Outcome.UNDECIDED
    assert found.causes == ()


@pytest.mark.parametrize("opened", ['{"a":', "["], ids=["objects", "lists"])
def test_a_document_nested_without_end_is_no_crash(opened: str) -> None:
    closed = {"{": "}", "[": "]"}[opened[0]]
    nested = f"{opened * 3000}1{closed * 3000}\n"
    assert of(nested).outcome is Outcome.UNDECIDED
    assert of(f"{REFUSED}\n{nested}{EMPTY}\n").code == "counter-permission"


def test_one_endless_line_is_read_in_bounded_memory() -> None:
    found = of(b"x" * 9_000_000 + b"\n" + REFUSED.encode())
    assert found.code == "counter-permission"


def test_the_log_of_another_program_called_ncu_is_told() -> None:
    found = of("Upgrading /srv/app/package.json\nthis is npm-check-updates 17.1.13\n")
    assert found.code == "wrong-ncu-on-path"


def test_a_log_of_nothing_known_says_so() -> None:
    found = of("gcc -O2 -c main.c\nmain.c:3: warning: unused variable\n")
    assert (found.outcome, found.code) == (Outcome.UNDECIDED, "nothing-recognised")


def test_an_unknown_error_is_shown_with_the_nearest_template() -> None:
    found = of("==ERROR== Failed to prepare the kernel for profiling on stream 7\n")
    assert (found.outcome, found.code) == (Outcome.UNDECIDED, "unknown-error-line")
    (line,) = found.unknown
    assert line.where == "ncu.log:1"
    assert line.nearest == "Failed to prepare kernel for profiling"
    assert line.likeness is not None
    assert line.likeness > 0.6


def test_a_message_that_opens_like_a_known_one_and_goes_on_is_not_that_one() -> None:
    found = of("==ERROR== Failed to profile anything for a reason that is new\n")
    assert found.code == "unknown-error-line"
    assert found.unknown[0].nearest is not None
    assert found.unknown[0].nearest.startswith("Failed to profile")


def test_unknown_lines_beside_a_known_cause_are_still_shown() -> None:
    found = of(f"{REFUSED}\n==ERROR== Something that nobody wrote before\n")
    assert found.code == "counter-permission"
    assert [u.where for u in found.unknown] == ["ncu.log:2"]


def test_known_lines_are_never_listed_as_unknown_whatever_the_file_is_called() -> None:
    for name in ("ncu.log", "library.txt", "nvidia-smi.log", "device.txt", "ls.txt"):
        assert of(f"{REFUSED}\n{EMPTY}\n", name).unknown == ()


def busy_server(file: BinaryIO) -> None:
    """A server's log with words of templates in it; the one error stands in the last line."""
    noise = "".join(
        f"INFO 09-16 18:45:02 metrics.py:{i}] Avg prompt throughput: {i}.4 tokens/s, Running: 12\n"
        f"(EngineCore pid=9) DEBUG compile of application option {i} unable to find the kernel\n"
        f'==PROF== Profiling "void gemm_{i % 300}" - {i}: 0%....50%....100% - 38 passes\n'
        for i in range(20_000)
    ).encode()
    for _ in range(bench.SIZE // len(noise) + 1):
        file.write(noise)
    file.write(REFUSED.encode())


def all_different(file: BinaryIO) -> None:
    """Complaints that no template knows, no two alike; the known error stands in the last line."""
    file.writelines(line.encode() for line in bench.unknown_complaints())
    file.write(REFUSED.encode())


@pytest.mark.slow
@pytest.mark.parametrize("write", [busy_server, all_different])
def test_a_hundred_megabytes_take_seconds_and_little_memory(
    tmp_path: Path, write: Callable[[BinaryIO], None]
) -> None:
    with (tmp_path / "big.log").open("wb") as file:
        write(file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # VmHWM is of that process alone; ru_maxrss would be inherited from the one that forked it.
    probe = (
        "import sys; from solscope.cli import commands\n"
        "code = commands.call(['diagnose', 'big.log', '--format', 'json'])\n"
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]\n"
        "print(peak, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert b'"counter-permission"' in done.stdout
    # The processor's time, not the wall's: other tests share the machine.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < bench.MOST_CPU_S
    assert int(done.stderr.split()[-1]) / 1e3 < bench.MOST_MB


def test_open_counters_do_not_make_an_empty_capture_well() -> None:
    found = diagnose(
        [
            Evidence(name="ncu.log", stream=io.BytesIO(EMPTY.encode())),
            Evidence(name="params", stream=io.BytesIO(b"RmProfilingAdminOnly: 0\n")),
        ]
    )
    assert (found.outcome, found.code) == (Outcome.UNDECIDED, "no-kernels-undecided")


def test_a_rank_that_stands_is_told_while_the_others_go_on() -> None:
    found = of(
        '==PROF== Profiling "ncclDevKernel_AllGather" - 0: 0%\n'
        '==PROF== Profiling "gemm" - 9: 0%....50%....100% - 8 passes\n'
    )
    assert found.code == "collective-under-serialised-replay"


def test_a_refusal_that_the_facts_contradict_is_undecided() -> None:
    found = diagnose(
        [
            Evidence(name="ncu.log", stream=io.BytesIO(REFUSED.encode())),
            Evidence(name="params", stream=io.BytesIO(b"RmProfilingAdminOnly: 0\n")),
        ]
    )
    assert (found.outcome, found.code) == (Outcome.UNDECIDED, "refused-although-open")
    assert found.checks


@pytest.mark.parametrize("ends", ["....50%....100% - 43 passes\n", ""])
def test_a_launch_that_takes_long_is_harmless_only_where_it_ended(ends: str) -> None:
    slow = (
        '==PROF== Profiling "gemm" - 0: 0%....50%....100% - 43 passes\n'
        '==PROF== Profiling "gemm" - 1: 0%\n'
        "==WARNING== Launching the workload is taking more time than expected. If this continues "
        "to hang, terminate the profile\n"
    )
    found = of(slow + ends)
    assert ("launch-took-long" in {c.code for c in found.harmless}) is bool(ends)
    assert (found.outcome is Outcome.WELL) is bool(ends)
