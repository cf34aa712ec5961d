"""Mutated reports end in a Report or a ReportError: no other exception, no hang, no blow-up."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import time

import pytest
from tests import builder, corpus
from tests.builder import Kernel, Rule

from solscope.errors import ReportError
from solscope.flows.analyze import analyze
from solscope.model.report import Report
from solscope.reports import ncu_rep

MUTATIONS = int(os.environ.get("SOLSCOPE_MUTATIONS", "4000"))
"""At least this many files per worker of the test below; five workers' seeds make 20,000."""
BUDGET_S = 60.0


def rich_report() -> bytes:
    """A report with every feature of the format, small enough to mutate fast."""
    return builder.report(
        [
            Kernel(
                "gemm",
                demangled="void gemm<float>(float*)",
                metrics={"gpu__time_duration.sum": 1000, "text": "a", "rate": 2.5, "none": None},
                instances={"sass__inst_executed_per_opcode": [("FFMA", 3)], "none": [(None, 1)]},
                sections=[("SpeedOfLight", "GPU Speed Of Light Throughput")],
                rules=[Rule("SOLBottleneck", "latency", speedup_pct=10.0)],
                push_pop=["decode", "layer 3"],
            ),
            Kernel("graph", kind="graph", metrics={"gpu__time_duration.sum": 7}),
            Kernel("range", kind="range", metrics={"gpu__time_duration.sum": 7}),
        ],
        command_line="ncu -o x",
    )


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One of the ways in which files get damaged."""
    out = bytearray(data)
    kind = chance.randrange(6)
    if kind == 0:
        return bytes(out[: chance.randrange(len(out) + 1)])
    if kind == 1:
        start = chance.randrange(len(out))
        del out[start : start + chance.randrange(1, 64)]
    elif kind == 2:
        start = chance.randrange(len(out))
        out[start:start] = chance.randbytes(chance.randrange(1, 64))
    elif kind == 3:
        start = chance.randrange(len(out))
        out[start : start + 4] = chance.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"])
    else:
        for _ in range(chance.randrange(1, 12)):
            out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


def use(report: Report) -> None:
    """Everything that an analysis and an overview touch."""
    for launch in report.launches:
        for name in (*launch.metrics, *launch.metrics.valueless()):
            launch.metrics.get(name)
            launch.metrics.instances(name)
        launch.details.rules()
        launch.details.sections()
        launch.details.nvtx()
    if report.launches:
        analyze([report])


def seeds() -> list[bytes]:
    small = [r for r in corpus.records("ncu-rep") if r["size"] < 120_000]
    return [rich_report(), *(corpus.raw(corpus.CORPUS / r["file"]) for r in small)]


@pytest.mark.parametrize("worker", range(5))
def test_mutated_files_end_in_a_report_or_a_report_error(worker: int) -> None:
    chance = random.Random(worker)
    originals = seeds()
    begun, outcomes = time.monotonic(), {"report": 0, "error": 0}
    for turn in range(MUTATIONS):
        # The built report is mutated most: a change hits its structure, not a cubin.
        original = originals[0] if turn % 16 else originals[turn // 16 % len(originals)]
        data = mutate(original, chance)
        started = time.monotonic()
        try:
            use(ncu_rep.read("mutated", data, "0"))
            outcomes["report"] += 1
        except ReportError:
            outcomes["error"] += 1
        assert time.monotonic() - started < 2.0
    assert min(outcomes.values()) > 0
    assert time.monotonic() - begun < BUDGET_S


def test_a_report_costs_less_than_ten_times_its_size_in_memory() -> None:
    corpus.require(corpus.CORPUS)
    import tracemalloc

    data = corpus.raw(corpus.find("2025-04-21_v2-float4"))
    report = ncu_rep.read("warm-up", rich_report(), "0")
    chance = random.Random(7)
    for _ in range(40):
        mutated = mutate(data, chance)
        tracemalloc.start()
        with contextlib.suppress(ReportError):
            report = ncu_rep.read("mutated", mutated, "0")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10 * max(len(mutated), 100_000)
    assert report is not None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < 4e9
