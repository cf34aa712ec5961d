"""The look inside: what is asked runs in a real shell, and what comes back is told apart."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from solscope.capture.snapshot import inside

needs_proc = pytest.mark.skipif(
    shutil.which("sh") is None or not Path("/proc/1/cmdline").exists(),
    reason="needs a POSIX shell and /proc",
)


@needs_proc
def test_every_question_is_a_line_that_a_real_shell_takes() -> None:
    for line in inside.QUESTIONS.values():
        done = subprocess.run(["sh", "-nc", line], capture_output=True, text=True, check=False)
        assert done.stderr == ""
    asked = "\n".join(f"echo '@@solscope:{n}'; ( {q} ) 2>&1" for n, q in inside.QUESTIONS.items())
    done = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=False)
    answers = inside.from_output(done.stdout, "server")
    assert answers.text("cmdline")
    assert "CapEff" in (answers.text("status") or "")
    assert {process.pid for process in answers.processes} >= {1}


def test_no_question_writes_or_asks_for_more_than_it_shows() -> None:
    for line in inside.QUESTIONS.values():
        words = line.replace("2>/dev/null", "").replace("</proc", "").replace("<$d/stat", "")
        assert ">" not in words
        assert "rm " not in words


def test_the_environment_keeps_names_of_secrets_and_drops_their_values() -> None:
    found = inside.from_texts({"environ": "HF_TOKEN=abc\nCUDA_VERSION=13.0\nnot a variable"}, "s")
    assert [(v.name, v.value, v.is_secret) for v in found.env] == [
        ("HF_TOKEN", None, True),
        ("CUDA_VERSION", "13.0", False),
    ]


def test_a_process_name_may_hold_blanks_and_brackets() -> None:
    text = "1 (vllm) S 0 1\n22 (a (b) c) R 1 1\nbroken"
    found = inside.from_texts({"processes": text}, "s").processes
    assert [(p.pid, p.name, p.parent) for p in found] == [(1, "vllm", 0), (22, "a (b) c", 1)]


def test_a_title_is_read_whole_where_the_kernel_cut_the_name() -> None:
    lines = (
        "15 (VLLM::EngineCor) S 1 1 0 @VLLM::EngineCore  ",
        "24 (VLLM::Worker_TP) S 15 1 @VLLM::Worker_TP0",
    )
    found = inside.from_texts({"processes": "\n".join(lines)}, "s").processes
    assert [(p.pid, p.name, p.parent) for p in found] == [
        (15, "VLLM::EngineCore", 1),
        (24, "VLLM::Worker_TP0", 15),
    ]


@needs_proc
def test_the_titles_of_running_processes_are_read_by_the_script_itself() -> None:
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, b'VLLM::Worker_TP', 0, 0, 0)"
    code = f"{rename}; import time; time.sleep(60)"
    with subprocess.Popen(["VLLM::Worker_TP3", "-c", code], executable=sys.executable) as child:
        try:
            for _ in range(100):
                question = ["sh", "-c", inside.QUESTIONS["processes"]]
                done = subprocess.run(question, capture_output=True, text=True, check=False)
                found = inside.from_texts({"processes": done.stdout}, "s").processes
                mine = [p for p in found if p.pid == child.pid and p.name == "VLLM::Worker_TP3"]
                if mine:
                    break
                time.sleep(0.05)
        finally:
            child.kill()
    assert [p.parent for p in mine] == [os.getpid()]


def test_an_answer_that_did_not_come_is_listed() -> None:
    found = inside.from_output("@@solscope:arch\nx86_64\n@@solscope:params\n", "s")
    assert found.text("arch") == "x86_64"
    assert "params" in found.unread
