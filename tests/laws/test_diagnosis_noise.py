"""Unrelated lines before, between and after change no diagnosis."""

from __future__ import annotations

import io
import json
import string

from hypothesis import given, settings
from hypothesis import strategies as st
from tests import corpus

from solscope.capture.diagnosis import Evidence, diagnose
from solscope.model.diagnosis import Diagnosis

CASES_FILE = corpus.SHARED / "cases" / "cases.json"

BUILT_IN = [
    "==PROF== Connected to process 4 (/usr/bin/python3)\n==ERROR== ERR_NVGPUCTRPERM - The user "
    "does not have permission\n==WARNING== No kernels were profiled.\n",
    '==PROF== Profiling "ncclDevKernel_AllReduce" - 0: 0%\n',
    '==PROF== Profiling "k" - 0: 0%....50%....100% - 38 passes\n',
    "==WARNING== Only 3/9 kernels could be matched across replay passes.\n",
]


def logs() -> list[str]:
    """Logs of the shared cases that hold lines of a profiler; our own where they are absent."""
    if not CASES_FILE.exists():
        return BUILT_IN
    found = [
        text
        for case in json.loads(CASES_FILE.read_text())
        for name, text in case["probe"]["files"].items()
        if "==" in text and name.endswith((".log", ".txt"))
    ]
    return BUILT_IN + found


UNRELATED = st.one_of(
    st.sampled_from(
        [
            "INFO 09-16 18:45:02 [loggers.py:123] Engine 000: Avg prompt throughput: 12.5 tokens/s",
            "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.9it/s]",
            "[mean over 100 iters] baseline: 349.303 ms",
            "I0101 12:00:00.000000     1 main.go:12] reconciling",
            "make[2]: Nothing to be done for 'all'.",
            "== Results ==",
            "",
            "\x1b[32mok\x1b[0m",
        ]
    ),
    st.text(alphabet=string.ascii_lowercase + " .-", min_size=0, max_size=40).map(
        lambda text: f"step {text}"
    ),
)


def told(text: str) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    found: Diagnosis = diagnose([Evidence(name="ncu.log", stream=io.BytesIO(text.encode()))])
    return (
        found.outcome.value,
        found.code,
        tuple(cause.code for cause in found.causes),
        tuple(sorted(cause.code for cause in found.harmless)),
    )


@given(log=st.sampled_from(logs()), noise=st.data())
@settings(max_examples=150, deadline=None)
def test_unrelated_lines_change_no_diagnosis(log: str, noise: st.DataObject) -> None:
    lines = log.splitlines()
    noisy: list[str] = []
    for line in lines:
        noisy += noise.draw(st.lists(UNRELATED, max_size=3))
        noisy.append(line)
    noisy += noise.draw(st.lists(UNRELATED, max_size=3))
    assert told("\n".join(noisy)) == told("\n".join(lines))


@given(data=st.binary(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_no_bytes_whatever_break_the_reader(data: bytes) -> None:
    found = diagnose([Evidence(name="ncu.log", stream=io.BytesIO(data))])
    assert found.summary


@given(text=st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_command_whatever_breaks_the_linter(text: str) -> None:
    found = diagnose([Evidence(name="--command", text=f"ncu {text}", is_command=True)])
    assert found.summary
