"""Time and memory of `solscope diagnose` on logs of 100 MB.

    python -m bench.diagnosis

Two logs: a server's with ncu's progress in it and one error at its end, and nothing but complaints
that are all different and that no template knows. Exit 1 where one takes 10 s of CPU or 200 MB.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SIZE = 100_000_000
MOST_CPU_S = 10.0
MOST_MB = 200.0

_WORDS = (
    "alpha", "bravo", "cuda", "device", "kernel", "driver", "memory", "cannot", "open", "profile",
    "failed", "replay", "counter", "section", "library", "symbol", "connect", "session", "process",
    "launch", "module", "invalid", "pointer", "address", "graph",
)  # fmt: skip
_SERVER = (
    '==PROF== Profiling "void flash_fwd_kernel<Traits<128, 64, 4>>(Params)" - {0}: '
    "0%....50%....100% - 8 passes\n",
    "INFO 06-12 10:00:{1:02d} [metrics.py:341] Avg prompt throughput: {0}.3 tokens/s, Running: 4\n",
    "(EngineCore_0 pid={0}) INFO 06-12 10:00:{1:02d} [gpu_model_runner.py:2345] captured {0}\n",
    'INFO:     10.0.0.1:{0} - "GET /health HTTP/1.1" 200 OK\n',
)
_ERROR = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0.\n"
)


def server_log(size: int = SIZE) -> Iterator[str]:
    """A long run whose only error stands in the last line."""
    written = number = 0
    while written < size:
        line = _SERVER[number % len(_SERVER)].format(number, number % 60)
        yield line
        written, number = written + len(line), number + 1
    yield _ERROR


def unknown_complaints(size: int = SIZE) -> Iterator[str]:
    """Complaints of random words, no two alike, the same at each call."""
    choose = random.Random(7)
    halves = [
        " ".join(choose.choice(_WORDS) + choose.choice(("", "x", "qq")) for _ in range(5))
        for _ in range(2000)
    ]
    written = number = 0
    while written < size:
        line = f"==ERROR== {halves[number // 2000]} {halves[number % 2000]}\n"
        yield line
        written, number = written + len(line), number + 1


LOGS: dict[str, Callable[[int], Iterator[str]]] = {
    "server log, one error at its end": server_log,
    "unknown complaints, all different": unknown_complaints,
}


def measure(path: Path) -> tuple[float, float, float]:
    """(wall s, CPU s, peak MB) of `solscope diagnose` in a process of its own."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "solscope.cli.main", "diagnose", str(path)],
        stdout=subprocess.DEVNULL,
    )
    _, _, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def main() -> int:
    """Print a line a log; 1 where one misses a limit."""
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.log"
        for name, lines in LOGS.items():
            with path.open("w", encoding="utf-8") as file:
                file.writelines(lines(SIZE))
            wall, cpu, peak = measure(path)
            print(f"{name:36} {wall:5.1f} s wall {cpu:5.1f} s CPU {peak:6.0f} MB")
            missed = missed or cpu > MOST_CPU_S or peak > MOST_MB
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
