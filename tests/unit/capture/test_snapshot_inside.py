"""The look inside: what is asked runs in a real shell, and what comes back is told apart."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from solscope.capture.snapshot import inside


@pytest.mark.skipif(
    shutil.which("sh") is None or not Path("/proc/1/cmdline").exists(),
    reason="needs a POSIX shell and /proc",
)
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


def test_an_answer_that_did_not_come_is_listed() -> None:
    found = inside.from_output("@@solscope:arch\nx86_64\n@@solscope:params\n", "s")
    assert found.text("arch") == "x86_64"
    assert "params" in found.unread
