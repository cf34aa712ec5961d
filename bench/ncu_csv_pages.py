"""Speed of the CSV reader against the plain way, in one run.

    python bench/ncu_csv_pages.py [FILE ...] [--repeats N]

The plain way is what a script does: Python's csv module, the units row, one factor a column,
``float`` of each cell, a dictionary a launch; it checks no locale, no absence, no unknown unit.
Where pandas is installed, ``read_csv`` with the same unit handling is timed too. Without files
the largest raw page of the corpus is taken, and one of 1,000 launches made from it.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tests import corpus

from solscope.model.units import printed_unit
from solscope.reports import ncu_csv

GENERATED_LAUNCHES = 1000
FIRST_METRIC = 11


def plainly(data: bytes) -> int:
    """Values read by csv, a factor a column and float."""
    rows = list(csv.reader(io.StringIO(data.decode())))
    names, units = rows[0], rows[1]
    factors = [10.0 ** printed_unit(unit).exponent for unit in units]
    launches = []
    for row in rows[2:]:
        launch: dict[str, float | str] = {}
        for name, factor, cell in zip(names, factors, row, strict=True):
            try:
                launch[name] = float(cell) * factor
            except ValueError:
                launch[name] = cell
        launches.append(launch)
    return sum(map(len, launches))


def by_pandas(data: bytes) -> int:
    """Values read by pandas, with the units row applied."""
    import pandas

    frame = pandas.read_csv(io.BytesIO(data), skiprows=[1], thousands=",")
    units = pandas.read_csv(io.BytesIO(data), nrows=1, dtype=str, keep_default_na=False)
    for name in frame.columns[FIRST_METRIC:]:
        factor = 10.0 ** printed_unit(units[name][0]).exponent
        if frame[name].dtype.kind in "if":
            frame[name] *= factor
    return sum(map(len, frame.to_dict("records")))


def ours(data: bytes) -> int:
    """Values read by the reader, format proved and absences told apart."""
    report = ncu_csv.read("bench.csv", data, "0" * 64)
    return sum(len(launch.metrics) + FIRST_METRIC for launch in report.launches)


def best_of(repeats: int, work: Callable[[bytes], int], data: bytes) -> tuple[float, int]:
    """Seconds of the fastest run, and values read."""
    best, count = float("inf"), 0
    for _ in range(repeats):
        begun = time.perf_counter()
        count = work(data)
        best = min(best, time.perf_counter() - begun)
    return best, count


def largest() -> bytes:
    """The largest raw page of the corpus."""
    wide = [r for r in corpus.records("ncu-csv") if r.get("shape") == "wide"]
    record = max(wide, key=lambda r: int(r["size"]))
    return corpus.raw(corpus.CORPUS / record["file"])


def many(data: bytes, launches: int) -> bytes:
    """The page's launches over and over, with IDs of their own."""
    lines = data.decode().splitlines()
    rows = [line.partition(",")[2] for line in lines[2:]]
    body = (f'"{i}",{rows[i % len(rows)]}' for i in range(launches))
    return "\n".join([*lines[:2], *body, ""]).encode()


def main() -> None:
    """Times each way on each file and prints a line for each."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("files", nargs="*", type=Path)
    arguments.add_argument("--repeats", type=int, default=5)
    given = arguments.parse_args()
    inputs = {str(path): corpus.raw(path) for path in given.files}
    if not inputs:
        page = largest()
        inputs = {
            "largest of the corpus": page,
            f"{GENERATED_LAUNCHES} launches": many(page, GENERATED_LAUNCHES),
        }
    ways: dict[str, Callable[[bytes], int]] = {"solscope": ours, "csv + float": plainly}
    if find_spec("pandas") is not None:
        ways["pandas"] = by_pandas
    for name, data in inputs.items():
        print(f"{name}: {len(data) / 1e6:.1f} MB")
        for way, work in ways.items():
            seconds, count = best_of(given.repeats, work, data)
            print(f"  {way:12} {seconds * 1e3:8.1f} ms  {count:9,} values")


if __name__ == "__main__":
    main()
