"""Reading reports: solscope against NVIDIA's `ncu_report`, in one run on the same files.

Every file is read by both, several times; the best of each counts, since machines are shared.
Memory and start-up are those of fresh processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests import corpus

import solscope

ROUNDS, TURNS = 5, 2
WANTED_LOAD, WANTED_ANALYZE, WANTED_HELP = 4.0, 8.0, 3.0


def main() -> None:
    """Print the tables; exit 1 where a target is missed."""
    if not corpus.CORPUS.exists():
        print("reading: the corpus is not here; nothing measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        files = unpacked(Path(folder))
        missed = [*compare(files), *memory(files), *startup()]
    for line in missed:
        print(f"MISSED: {line}")
    sys.exit(1 if missed else 0)


def unpacked(folder: Path) -> list[Path]:
    """Plain copies under NVIDIA's suffix: its reader goes by the name."""
    files = []
    for index, record in enumerate(corpus.records("ncu-rep")):
        path = folder / f"{index}.ncu-rep"
        path.write_bytes(corpus.raw(corpus.CORPUS / record["file"]))
        files.append(path)
    return sorted(files, key=lambda p: p.stat().st_size)


def theirs(path: str) -> int:
    """Load and read every aggregate with NVIDIA's module."""
    import ncu_report

    count = 0
    for group in ncu_report.load_report(path):
        for action in group:
            for name in action.metric_names():
                action.metric_by_name(name).value()
                count += 1
    return count


def ours(path: str) -> int:
    """The same with solscope."""
    count = 0
    for launch in solscope.read(path).launches:
        count += len(dict(launch.metrics.items())) + len(launch.metrics.valueless())
    return count


def analyze(path: str) -> int:
    """The path of `solscope analyze`: only what the verdict needs."""
    return len(solscope.analyze([solscope.read(path)]).kernels)


READERS: dict[str, Callable[[str], int]] = {
    "theirs": theirs,
    "ours": ours,
    "analyze": analyze,
}


def work(name: str, paths: list[str]) -> None:
    """In a process of its own: print the shortest time of each file, in seconds."""
    function = READERS[name]
    function(paths[0])  # imports
    best = []
    for path in paths:
        taken = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            function(path)
            taken.append(time.perf_counter() - begun)
        best.append(min(taken))
    print(json.dumps(best))


def best_of(files: list[Path]) -> dict[str, list[float]]:
    """Shortest time per reader and file. Readers take turns, each in a fresh process: NVIDIA's
    module keeps what it read, and its garbage must not slow another."""
    paths = [str(path) for path in files]
    best: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name in READERS:
            command = [sys.executable, "-m", "bench.reading", "--worker", name, *paths]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times = json.loads(done.stdout.splitlines()[-1])
            best[name] = [min(pair) for pair in zip(times, best.get(name, times), strict=True)]
    return best


def compare(files: list[Path]) -> list[str]:
    """Load + every aggregate, and the analyze path, per file and over all."""
    best = best_of(files)
    rows = list(zip(files, best["theirs"], best["ours"], best["analyze"], strict=True))
    print(f"{'file size':>10} {'ncu_report':>11} {'solscope':>9} {'ratio':>6} {'analyze':>8} ratio")
    shown = [rows[0], rows[len(rows) // 2], *rows[-6:]]
    for path, a, b, c in shown:
        size = path.stat().st_size / 1e6
        print(f"{size:8.2f} MB {1e3 * a:8.1f} ms {1e3 * b:6.1f} ms {a / b:6.1f} "
              f"{1e3 * c:5.1f} ms {a / c:5.1f}")  # fmt: skip
    totals = [sum(row[i] for row in rows) for i in (1, 2, 3)]
    load, judged = totals[0] / totals[1], totals[0] / totals[2]
    ratios = sorted(row[1] / row[2] for row in rows)
    print(f"{len(rows)} files  {1e3 * totals[0]:8.0f} ms {1e3 * totals[1]:6.0f} ms {load:6.1f} "
          f"{1e3 * totals[2]:5.0f} ms {judged:5.1f}   worst file {ratios[0]:.1f}, "
          f"median {ratios[len(ratios) // 2]:.1f}")  # fmt: skip
    missed = []
    if load < WANTED_LOAD:
        missed.append(f"load + aggregates {load:.1f} times faster, wanted {WANTED_LOAD}")
    if judged < WANTED_ANALYZE:
        missed.append(f"analyze path {judged:.1f} times faster, wanted {WANTED_ANALYZE}")
    return missed


def peak_mb(code: str, *arguments: str) -> float:
    """Peak resident memory of a fresh interpreter that runs this code."""
    # VmHWM is of this process alone; ru_maxrss would be inherited from the one that forked it.
    probe = f"{code}\nprint(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    done = subprocess.run(
        [sys.executable, "-c", probe, *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1]) / 1024


def memory(files: list[Path]) -> list[str]:
    """Peak memory on the largest report."""
    largest = str(files[-1])
    run = "import sys; from bench import reading; reading.{}(sys.argv[1])"
    a, b = (peak_mb(run.format(name), largest) for name in ("theirs", "analyze"))
    print(f"\npeak memory, {os.path.getsize(largest) / 1e6:.1f} MB report: "
          f"ncu_report {a:.0f} MB, solscope analyze {b:.0f} MB, ratio {b / a:.2f}")  # fmt: skip
    return [] if b <= a else [f"analyze peaks at {b:.0f} MB, ncu_report at {a:.0f} MB"]


def startup() -> list[str]:
    """`solscope --help` against an empty interpreter."""

    def fastest(*command: str) -> float:
        times = []
        for _ in range(15):
            begun = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - begun)
        return min(times)

    empty, help_ = fastest("-c", "pass"), fastest("-m", "solscope.cli.main", "--help")
    print(f"python -c pass {1e3 * empty:.1f} ms, solscope --help {1e3 * help_:.1f} ms, "
          f"ratio {help_ / empty:.2f}")  # fmt: skip
    return [] if help_ <= WANTED_HELP * empty else [f"--help takes {help_ / empty:.1f} times"]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], sys.argv[3:])
    else:
        main()
