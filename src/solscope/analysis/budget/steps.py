"""Where steps begin and end: by annotations, by graph replays, else the whole window."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from re import Pattern
from typing import Any

from solscope.model.budget import StepSource
from solscope.model.trace import TimelineReport


@dataclass(frozen=True, slots=True)
class Marks:
    """One kind of step mark: every step's name, and those that are decode steps."""

    label: str
    any_step: Pattern[str]
    decode: Pattern[str]


# A step without a prefill (context) request and with at least one decode (generation) request.
_VLLM_DECODE = re.compile(r"_?context_0\D.*generation_[1-9]")

# As the engines annotate them (vLLM, SGLang, the torch profiler, TensorRT-LLM's NVTX ranges).
KNOWN_MARKS = (
    Marks("vLLM", re.compile(r"^execute_(\d+_)?context_\d"), _VLLM_DECODE),
    Marks("SGLang", re.compile(r"^step\["), re.compile(r"^step\[DECODE", re.IGNORECASE)),
    Marks("decode", re.compile(r"\bdecode[_ -]?(step|iter|token)", re.IGNORECASE), re.compile("")),
    Marks("model forward", re.compile(r"(execute_model|gpu_model_runner)"), re.compile("")),
    Marks("TensorRT-LLM", re.compile(r"^\[?Executor\]? _?forward_step"), re.compile("")),
    Marks("decode", re.compile(r"^decode\b", re.IGNORECASE), re.compile("")),
    Marks("ProfilerStep", re.compile(r"^ProfilerStep#\d+"), re.compile("")),
)

MIN_REPLAYS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One step's window on the capture's clock."""

    begin: int
    end: int


def find(
    report: TimelineReport, device: int | None, pattern: Pattern[str] | None = None
) -> tuple[StepSource, list[Step]]:
    """The steps of a device.

    A step lasts until the next begins, so that the host's work between steps is part of it; the
    last one, whose successor is unknown, is left out where there are others.
    """
    kinds = KNOWN_MARKS if pattern is None else (Marks(pattern.pattern, pattern, re.compile("")),)
    others: list[str] = []
    for marks in kinds:
        for side in ("gpu", "host"):
            steps, seen = _by_annotation(report, device, marks, side)
            if seen and not steps:
                others.append(f"{seen} step marks by {marks.label}, none of a decode step")
            if steps:
                return StepSource(kind="annotation", label=f"{marks.label} ({side})"), steps
    if pattern is not None:
        return StepSource(kind="annotation", label=pattern.pattern), []
    replays = _by_graph(report, device)
    if len(replays) >= MIN_REPLAYS:
        return StepSource(kind="graph", label="replays of the most replayed graph"), replays
    label = others[0] if others else "no step marks and no repeated graph"
    return StepSource(kind="window", label=label), _window(report, device)


def names(report: TimelineReport) -> list[str]:
    """All annotations, the most frequent first."""
    counts = Counter(report.annotations["name"].to_pylist())
    return [str(name) for name, _ in counts.most_common() if name]


def _by_annotation(
    report: TimelineReport, device: int | None, marks: Marks, side: str
) -> tuple[list[Step], int]:
    """The decode steps, and how many steps of any kind were marked."""
    rows = _annotations(report, marks.any_step, side)
    owners = _owners(report, device)
    by_thread: dict[object, list[tuple[int, int, str]]] = {}
    for row in rows:
        is_here = row["device"] == device if side == "gpu" else _owned(row["process"], owners)
        if is_here:
            key = (row["process"], row["thread"])
            by_thread.setdefault(key, []).append((row["start_ns"], row["end_ns"], row["name"]))
    if not by_thread:
        return [], 0
    outer = _outermost(max(by_thread.values(), key=len))
    steps = [
        Step(begin, following)
        for (begin, _, name), (following, _, _) in pairwise(outer)
        if marks.decode.search(name)
    ]
    if len(outer) == 1 and marks.decode.search(outer[0][2]):
        steps = _only(report, device, outer[0])
    return steps, len(outer)


def _only(report: TimelineReport, device: int | None, mark: tuple[int, int, str]) -> list[Step]:
    """A single step: nothing tells when the next would begin, so the GPU's own work bounds it.

    Its launches may run ahead of the GPU by a whole step; what begins before the mark is not
    of this step.
    """
    begin, end, _ = mark
    window = _window(report, device, after=begin)
    return window or [Step(begin, end)]


def _annotations(report: TimelineReport, wanted: Pattern[str], side: str) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = report.annotations
    if table.num_rows == 0:
        return []
    fitting = [n for n in pc.unique(table["name"]).to_pylist() if n and wanted.search(n)]
    if not fitting:
        return []
    name, where = (table[c].cast(pa.string()) for c in ("name", "side"))
    keep = pc.and_(pc.is_in(name, value_set=pa.array(fitting)), pc.equal(where, side))
    rows: list[dict[str, Any]] = table.filter(keep).to_pylist()
    return rows


def _outermost(marks: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Without marks that begin inside another one."""
    kept: list[tuple[int, int, str]] = []
    for mark in sorted(marks, key=lambda m: (m[0], -m[1])):
        if not kept or mark[0] >= kept[-1][1]:
            kept.append(mark)
    return kept


def _owners(report: TimelineReport, device: int | None) -> set[int]:
    """The processes whose kernels ran on the device; empty where the file does not tell."""
    found = set()
    for table in (report.kernels, report.graphs):
        pairs = table.select(["device", "process"]).group_by(["device", "process"]).aggregate([])
        rows = pairs.to_pylist()
        found |= {r["process"] for r in rows if r["device"] == device and r["process"] is not None}
    return found


def _owned(process: object, owners: set[int]) -> bool:
    return not owners or process is None or process in owners


def _by_graph(report: TimelineReport, device: int | None) -> list[Step]:
    rows = [r for r in report.graphs.to_pylist() if r["device"] == device]
    if not rows:
        return []
    graph, _ = Counter(row["graph"] for row in rows).most_common(1)[0]
    begins = sorted(row["start_ns"] for row in rows if row["graph"] == graph)
    return [Step(a, b) for a, b in pairwise(begins)]


def _window(report: TimelineReport, device: int | None, after: int | None = None) -> list[Step]:
    import pyarrow.compute as pc

    begins, ends = [], []
    for table in (report.kernels, report.graphs, report.copies):
        here = table.filter(pc.equal(table["device"], device)) if device is not None else table
        if after is not None:
            here = here.filter(pc.greater_equal(here["start_ns"], after))
        if here.num_rows:
            begins.append(pc.min(here["start_ns"]).as_py())
            ends.append(pc.max(here["end_ns"]).as_py())
    return [Step(min(begins), max(ends))] if begins else []
