"""What is quoted from a log names no one and no machine, and holds no secret."""

from __future__ import annotations

import io

import pytest

from solscope.capture.diagnosis import Evidence, diagnose
from solscope.capture.diagnosis.redaction import LONGEST_QUOTE, quote, redact
from solscope.render import diagnosis as page


@pytest.mark.parametrize(
    ("secret", "line"),
    [
        ("hf_AbCdEfGhIjKlMnOp", "HF_TOKEN=hf_AbCdEfGhIjKlMnOp"),
        ("hunter2", "password: hunter2"),
        ("hunter2", '{"api_key": "hunter2"}'),
        ("s3cr3tvalue", "Authorization: Bearer s3cr3tvalue"),
        ("hunter2", "https://bob:hunter2@registry.example/x"),
        ("alice", "/home/alice/models/x.py"),
        ("alice", "/Users/alice/x"),
        ("10.1.2.3", "connected to 10.1.2.3:8000"),
        ("alice", "alice@node7:~/work$ ncu -o x"),
        ("gpu-node-17", "hostname=gpu-node-17 rank=3"),
        ("alice@example.org", "mail alice@example.org"),
        ("8f2c1a77", "GPU-8f2c1a77-1111-2222-3333-444455556666"),
        ("fe80:0:0:0:1:2:3:4", "addr fe80:0:0:0:1:2:3:4 up"),
    ],
)
def test_names_and_secrets_are_masked(secret: str, line: str) -> None:
    assert secret not in redact(line)


@pytest.mark.parametrize(
    "line",
    [
        "ncu 2025.4.1.0 (build 33998838)",
        "driver 580.126.09",
        "/opt/nvidia/nsight-compute/2025.3.1/ncu",
        "tokens/s 123.4, max_tokens: 16",
        "==PROF== Connected to process 41 (/usr/bin/python3.10)",
        "void flash::fwd<128, 64>(Params)",
    ],
)
def test_what_the_diagnosis_needs_stays(line: str) -> None:
    assert redact(line) == line


def test_a_quote_is_bounded_and_printable() -> None:
    shown = quote("\x00\x07==ERROR== " + "x" * 10_000)
    assert len(shown) <= LONGEST_QUOTE
    assert shown.isprintable()


def test_no_page_repeats_a_secret_of_the_log_or_of_the_command() -> None:
    log = (
        "==ERROR== Another tool/injection might be loaded since CUDA_INJECTION64_PATH is set to "
        "/home/alice/agent.so. To run Nsight Compute unset CUDA_INJECTION64_PATH environment "
        "variable.\n==ERROR== weird: token=hunter2 from 10.1.2.3\n"
    )
    found = diagnose(
        [
            Evidence(name="/home/alice/ncu.log", stream=io.BytesIO(log.encode())),
            Evidence(
                name="--command",
                text="HF_TOKEN=hf_AbCdEfGhIjKl ncu -o /home/alice/x python s.py --api-key=hunter2",
                is_command=True,
            ),
        ]
    )
    for text in (page.table(found), page.markdown(found), page.as_json(found)):
        for secret in ("alice", "hunter2", "10.1.2.3", "hf_AbC"):
            assert secret not in text
