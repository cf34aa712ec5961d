"""Mutated files of every format, through the one door that users have: a report or a ReportError.

20,000 files in 60 s over all formats, plain and gzipped, are the budget; each of the test's
workers takes its share with a seed of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import builder
from tests.builder import Kernel
from tests.timelines import host_event, kernel_event, kernel_row, write_export, write_trace

from solscope.errors import ReportError
from solscope.flows.analyze import analyze
from solscope.model.report import Report
from solscope.model.trace import SampleReport
from solscope.reports import formats

FILES = int(os.environ.get("SOLSCOPE_MUTATIONS", "4000"))
"""Files per worker; five workers make 20,000."""
WORKERS = 5
BUDGET_S = 60.0
SLOWEST_S = 2.0

FIXED = '"ID","Process ID","Process Name","Host Name","Kernel Name","Device","CC"'
ROW = '"0","11","app","127.0.0.1","void k<1, ""a"">(int *)","0","9.0"'
RAW = (
    f'==PROF== Connected\n{FIXED},"dram__bytes_read.sum","gpu__time_duration.sum",'
    '"sass__thread_inst_executed_true_per_opcode"\n"","","","","","","","Mbyte","usecond",""\n'
    f'{ROW},"25.170176","89.728","5 (FADD: 2; FFMA: 3)"\n{ROW},"no data","1.5","(1; 2)"\n'
)
COMPUTE = f'{ROW},"Compute Workload Analysis",""'
CYCLES = (
    f'{ROW},"GPU and Memory Workload Distribution","Workload Distribution","SM Active Cycles",""'
)
DETAILS = (
    f'{FIXED},"Section Name","Body Item Label","Metric Name","Metric Unit","Metric Value"\n'
    f'{ROW},"GPU Speed Of Light Throughput","","Duration","us","41.70"\n'
    f'{ROW},"GPU Speed Of Light Throughput","","Elapsed Cycles","cycle","63,343"\n'
    f'{COMPUTE},"Issue Slots Busy","%","25.20"\n{COMPUTE},"Issued Ipc Active","","2.00"\n'
    f'{COMPUTE},"Executed Ipc Active","","1.00"\n{COMPUTE},"Executed Ipc Elapsed","","0.50"\n'
    f'{CYCLES},"5.50"\n{CYCLES},"6"\n{CYCLES},"5"\n{CYCLES},"22"\n'
)
TEXT = (
    "[11] app@127.0.0.1\n  k(int) (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
    "    Section: GPU Speed Of Light Throughput\n"
    "    -------------- ----------- ------------\n"
    "    Metric Name    Metric Unit Metric Value\n"
    "    -------------- ----------- ------------\n"
    "    Elapsed Cycles       cycle        63343\n"
    "    -------------- ----------- ------------\n"
)
STATS = (
    "Processing [t.sqlite] with [cuda_gpu_kern_sum.py]...\n"
    "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
    '60.0,"1,200,000",12,100000.0,"void gemm<128, 64>(P)"\n'
)
SHARES = "kernel\tshare %\nflash_fwd\t41%\ngemm\t5\n"
MARKDOWN = (
    "| Time (%) | Total Time (ns) | Instances | Name |\n|---|---|---|---|\n|60|1,200|12|`gemm`|\n"
)
ROWS = '[{"Time (%)": 60.0, "Total Time (ns)": 1200, "Instances": 12, "Name": "gemm"}]\n'
LOG = "".join(
    f"{json.dumps({'log': f'{line}{chr(10)}', 'stream': 'stdout'})}\n" for line in RAW.splitlines()
)
MIXED = "".join(f"[rank{rank}]: {line}\n" for line in TEXT.splitlines() for rank in (0, 1))
TIGHT = "\n".join(" ".join(line.split()) for line in TEXT.splitlines()) + "\n"


def report() -> bytes:
    return builder.report(
        [
            Kernel(
                "gemm",
                metrics={"gpu__time_duration.sum": 1000, "text": "a", "none": None},
                instances={"sass__inst_executed_per_opcode": [("FFMA", 3)]},
            )
        ],
        command_line="ncu -o x",
    )


def export(folder: Path) -> bytes:
    rows = [kernel_row(i * 10, i * 10 + 7, i % 2) for i in range(20)]
    return write_export(folder / "seed.sqlite", rows).read_bytes()


def trace(folder: Path) -> bytes:
    events = [kernel_event(f"k{i}", i, 0.5) for i in range(8)]
    events.append(host_event("cuda_runtime", "cudaLaunchKernel", 0, 1))
    return write_trace(folder / "seed.json", events, distributedInfo={"rank": 0}).read_bytes()


def seeds(folder: Path) -> list[bytes]:
    """One small file of each format, the costly ones (a database for each) least often."""
    texts = [text.encode() for text in (RAW, DETAILS, TEXT, STATS, SHARES)]
    carried = [text.encode() for text in (MARKDOWN, ROWS, LOG, MIXED, TIGHT)]
    plain = [*texts, report(), trace(folder)]
    return [
        *plain,
        *plain,
        *texts,
        *carried,
        *(gzip.compress(data, 1) for data in plain),
        export(folder),
    ]


def damage(data: bytes, chance: random.Random) -> bytes:
    """One to five cuts, flips, copies, insertions, or the end lost."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at, span = chance.randrange(len(found) or 1), chance.randint(1, 40)
        ways: list[Callable[[], object]] = [
            lambda at=at: found.__setitem__(slice(at, at + 1), bytes([chance.randrange(256)])),
            lambda at=at, span=span: found.__delitem__(slice(at, at + span)),
            lambda at=at, span=span: found.__setitem__(slice(at, at), found[at : at + span]),
            lambda at=at: found.__setitem__(
                slice(at, at), chance.choice([b'"', b",", b"\n", b"\0", b"9" * 30, b"==", b"\xff"])
            ),
            lambda at=at: found.__delitem__(slice(max(at, len(found) // 2), len(found))),
        ]
        chance.choice(ways)()
    return bytes(found)


def use(path: str) -> str:
    """Read the file and everything that pages touch; the format that it was taken for."""
    found = formats.read(path)
    if isinstance(found, Report):
        if found.launches:
            analyze([found])
    elif isinstance(found, SampleReport):
        found.kernels()
    else:
        found.kernel_times()
    return found.provenance.format


@pytest.mark.parametrize("worker", range(WORKERS))
def test_any_damaged_file_is_a_report_or_a_report_error(worker: int, tmp_path: Path) -> None:
    chance = random.Random(worker)
    originals = seeds(tmp_path)
    path = tmp_path / "damaged"
    outcomes: Counter[str] = Counter()
    for data in originals:  # loads every reader; the clock is for the files alone
        path.write_bytes(data)
        use(str(path))
    begun = time.monotonic()
    for _ in range(FILES):
        path.write_bytes(damage(chance.choice(originals), chance))
        started = time.monotonic()
        try:
            outcomes[use(str(path))] += 1
        except ReportError as error:
            assert error.what
            outcomes["refused"] += 1
        assert time.monotonic() - started < SLOWEST_S
    assert time.monotonic() - begun < BUDGET_S / WORKERS * 2  # half of it on a busy machine
    assert len(outcomes) >= 7  # every format was reached, and some files were refused
    assert outcomes["refused"] < FILES


def test_the_seeds_are_whole_and_of_every_format(tmp_path: Path) -> None:
    path = tmp_path / "seed"
    kinds = set()
    for data in seeds(tmp_path):
        path.write_bytes(data)
        kinds.add(formats.kind_of(str(path)))
    assert kinds == {reader.NAME for reader in formats.readers()}
