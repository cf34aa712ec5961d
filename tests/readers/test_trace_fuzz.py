"""Damaged timelines: a report or a ReportError, never anything else."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from tests.timelines import host_event, kernel_event, kernel_row, write_export, write_trace

from solscope.errors import ReportError
from solscope.reports import kineto, nsys, nsys_stats, zymtrace

MUTATIONS = 400
STATS = (
    "Processing [t.sqlite] with [cuda_gpu_kern_sum.py]...\n"
    "Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,BlockXYZ,Name\n"
    '60.0,"1,200,000",12,100000.0,1 2 3,4 5 6,"void gemm<128, 64>(P)"\n\n'
    "Start (ns),Duration (ns),CorrId,GrdX,BlkX,Bytes (MB),Device,Strm,Name\n"
    "10,5,1,1,1,,NVIDIA B200 (0),7,k\n20,5,1,,,1.5,NVIDIA B200 (0),7,[CUDA memcpy HtoD]\n"
)
SHARES = b'[{"kernel": "flash_fwd", "samples": 41}, {"kernel": "gemm", "share": 0.59}]'


def export(folder: Path) -> bytes:
    rows = [kernel_row(i * 10, i * 10 + 7, i % 2) for i in range(50)]
    more = (
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT);"
        "INSERT INTO NVTX_EVENTS VALUES (0, 10, 59, 'step');"
        "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, smCount INT, cuDevice INT);"
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100', 132, 0);"
    )
    return write_export(folder / "seed.sqlite", rows, more=more).read_bytes()


def trace(folder: Path) -> bytes:
    events = [kernel_event(f"k{i}", i, 0.5) for i in range(20)]
    events.append(host_event("cuda_runtime", "cudaLaunchKernel", 0, 1))
    return write_trace(folder / "seed.json", events, distributedInfo={"rank": 0}).read_bytes()


def packed_trace(folder: Path) -> bytes:
    return gzip.compress(trace(folder))


SEEDS: list[tuple[ModuleType, Callable[[Path], bytes]]] = [
    (nsys, export),
    (kineto, trace),
    (kineto, packed_trace),
    (nsys_stats, lambda _: STATS.encode()),
    (zymtrace, lambda _: SHARES),
    (zymtrace, lambda _: b"kernel\tshare %\nflash_fwd\t41%\ngemm\t5\n"),
]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, a piece cut out, doubled, or the end cut off."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(found) or 1)
        span = chance.randint(1, 40)
        kind = chance.randrange(5)
        if kind == 0:
            found[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            del found[at : at + span]
        elif kind == 2:
            found[at:at] = found[at : at + span]
        elif kind == 3:
            found[at : at + 1] = chance.choice([b'"', b"{", b"]", b",", b"-", b"9" * 30, b"\xff"])
        else:
            del found[len(found) - chance.randrange(len(found) // 2 + 1) :]
    return bytes(found)


@pytest.mark.parametrize(
    ("reader", "seed"), SEEDS, ids=["nsys", "kineto", "kineto-gz", "stats", "json", "tsv"]
)
def test_a_mutated_file_gives_a_report_or_a_named_error(
    tmp_path: Path, reader: ModuleType, seed: Callable[[Path], bytes]
) -> None:
    data = seed(tmp_path)
    chance = random.Random(20260131)
    path = tmp_path / "mutated"
    read = 0
    for _ in range(MUTATIONS):
        path.write_bytes(mutated(data, chance))
        try:
            reader.recognises(path.read_bytes()[:65536], str(path))
            report = reader.read(str(path), "")
        except ReportError:
            continue
        read += 1
        _ = report.kernels() if reader is zymtrace else report.kernel_times()
    assert read < MUTATIONS  # some mutations must be caught
