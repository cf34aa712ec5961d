"""Damaged files end in a report or in a named error, never in anything else."""

from __future__ import annotations

import random
import time

import pytest

from solscope.errors import ReportError
from solscope.model.report import Report
from solscope.reports import lookalikes, ncu_csv, ncu_text

FIXED = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream"'
SHAPE = '"Block Size","Grid Size","Device","CC"'
LAUNCH = '"0","11","app","127.0.0.1","k<1, ""a"">(int, float *)","1","7"'
SIZES = '"(256, 1, 1)","(4096, 1, 1)","0","8.6"'
RAW = (
    f'{FIXED},{SHAPE},"dram__bytes_read.sum","gpu__time_duration.sum","launch__grid_size"\n'
    '"","","","","","","","","","","","Mbyte","usecond",""\n'
    f'{LAUNCH},{SIZES},"25.170176","89.728000","4,096"\n'
    f'{LAUNCH},{SIZES},"no data","n/a","(1; 2; 3)"\n'
)
DETAILS = (
    "==PROF== Connected to process 5\n"
    f'{FIXED},{SHAPE},"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name",'
    '"Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"\n'
    f'{LAUNCH},{SIZES},"GPU Speed Of Light Throughput","Duration","us","41,70",\n'
    f'{LAUNCH},{SIZES},"GPU Speed Of Light Throughput","Elapsed Cycles","cycle","63.343",\n'
    f'{LAUNCH},{SIZES},"SpeedOfLight","","","","SOL","OPT","a\nb, ""c""","local","8,3"\n'
)
SUMMARY = (
    '"Process ID","Kernel Name","Invocations","Section Name","Metric Name","Metric Unit",'
    '"Minimum","Maximum","Average"\n'
    '"1","k","12","GPU Speed Of Light Throughput","Duration","us","8.0","11.0","9.0"\n'
)
SESSION = (
    'Launch Settings\n"Launch Attribute","Value"\n"Profiler Command Line","ncu x"\n\n'
    'Session Info\n"Session Attribute","Value"\n"Created","2025-Sep-06 19:16:49"\n\n'
    'Device Attributes\n"Device Attribute","Device 0"\n"multiprocessor_count","22"\n'
)
TEXT = (
    "[11] app@127.0.0.1\n"
    "  k(int) (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 8.6\n"
    "    NVTX Push/Pop Stack for Thread 11:\n     <default domain>\n        <0,decode>\n\n"
    "    Section: GPU Speed Of Light Throughput\n"
    "    -------------- ----------- ------------\n"
    "    Metric Name    Metric Unit Metric Value\n"
    "    -------------- ----------- ------------\n"
    "    Elapsed Cycles       cycle       63,343\n"
    "    Duration                us        41.70\n"
    "    -------------- ----------- ------------\n\n"
    "    OPT   Est. Local Speedup: 8.3%\n          Do better.\n\n"
)
SEEDS = tuple(text.encode() for text in (RAW, DETAILS, SUMMARY, SESSION, TEXT))
SHARDS = (b'"', b",", b"\n", b"\r", b"\0", b"\xff", b"==", b"1e999", b"(", b")", b"9" * 30)


def mutate(data: bytes, dice: random.Random) -> bytes:
    """A few cuts, flips, copies and insertions."""
    for _ in range(dice.randint(1, 6)):
        here, there = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        match dice.randrange(6):
            case 0:
                data = data[:here] + data[there:]
            case 1:
                data = data[:there] + data[here:there] + data[there:]
            case 2:
                data = data[:here] + bytes([dice.randrange(256)]) + data[here + 1 :]
            case 3:
                data = data[:here] + dice.choice(SHARDS) + data[here:]
            case 4:
                data = data[:there]
            case _:
                data = data.replace(dice.choice(SHARDS), dice.choice(SHARDS), 2)
    return data


@pytest.mark.parametrize("reader", [ncu_csv, ncu_text])
def test_a_mutated_file_is_a_report_or_a_report_error(reader: object) -> None:
    dice = random.Random(20260101)
    begun, read, refused = time.monotonic(), 0, 0
    for _ in range(3000):
        data = mutate(dice.choice(SEEDS), dice)
        lookalikes.name_of(data[:65536], "x")
        try:
            assert isinstance(reader.read("x.csv", data, "0" * 64), Report)
            reader.explain("x.csv", data)
            read += 1
        except ReportError:
            refused += 1
    assert read > 300
    assert refused > 300
    assert time.monotonic() - begun < 20
