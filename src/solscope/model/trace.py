"""Timelines and samples: many small events, held in columns behind a small typed face.

Times are integer nanoseconds on the capture's own clock. A timeline of 20 million kernels costs
about 70 bytes a kernel: names are dictionaries, everything else is an integer column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from solscope.model.finding import Absence, Issue
from solscope.model.kernel_name import short_name
from solscope.model.report import Device, Dim3, Provenance

if TYPE_CHECKING:
    import pyarrow as pa

UNNAMED = "<no name in the export>"
"""Stands where an event's name is not in the file; never matched with anything."""


@lru_cache(maxsize=1)
def schemas() -> dict[str, pa.Schema]:
    """The columns of each table, by table name.

    ``kernels``, ``graphs`` and ``copies`` are what the GPU did (a graph row is one replay of a
    CUDA graph whose kernels were not recorded singly); ``annotations`` are NVTX ranges and the
    profiler's own steps, ``side`` being ``host`` or ``gpu``.
    """
    import pyarrow as pa

    name = pa.dictionary(pa.int32(), pa.string())
    span = [("start_ns", pa.int64()), ("end_ns", pa.int64())]
    place = [
        ("device", pa.int32()),
        ("stream", pa.int64()),
        ("process", pa.int32()),
        ("correlation", pa.int64()),
    ]
    owner = [("process", pa.int32()), ("thread", pa.int64())]
    grid = [(f"{what}_{axis}", pa.int32()) for what in ("grid", "block") for axis in "xyz"]
    return {
        "kernels": pa.schema(
            [*span, ("name", name), ("short_name", name), *place, *grid, ("graph_node", pa.int64())]
        ),
        "graphs": pa.schema([*span, *place, ("graph", pa.int64())]),
        "copies": pa.schema([*span, ("kind", name), *place, ("bytes", pa.int64())]),
        "annotations": pa.schema(
            [*span, ("name", name), ("side", name), ("device", pa.int32()), *owner]
        ),
    }


def empty(table: str) -> pa.Table:
    """A table of the given name without rows."""
    return schemas()[table].empty_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """All launches of one kernel on one device by one process, in wall-clock time.

    ``launches`` counts recorded executions; ``in_graphs`` how many of them ran inside a CUDA
    graph. ``None`` where the source does not say. ``time_share`` (0 to 1) is the source's own.
    """

    name: str
    name_full: str
    launches: int | None = None
    total_ns: float | None = None
    mean_ns: float | None = None
    median_ns: float | None = None
    min_ns: float | None = None
    max_ns: float | None = None
    time_share: float | None = None
    device: int | None = None
    process: int | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None
    in_graphs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotal:
    """All calls of one function of the CUDA or HIP API, with the time spent in them."""

    name: str
    calls: int
    total_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineReport:
    """What GPUs did over time, as Nsight Systems or a framework's profiler saw it.

    The four tables have the columns of :func:`schemas`. Where a file holds sums only (a
    summary of ``nsys stats``) the tables are empty and ``sums`` is not ``None``. ``vendor`` is
    ``NVIDIA``, ``AMD`` or ``None`` where nothing in the file tells. ``host_slowed_by`` says
    what the capture recorded that makes the host side slower than it is unobserved.
    """

    provenance: Provenance
    kernels: pa.Table
    graphs: pa.Table
    copies: pa.Table
    annotations: pa.Table
    calls: tuple[CallTotal, ...] = ()
    sums: tuple[KernelTime, ...] | None = None
    vendor: str | None = None
    devices: tuple[Device, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    graph_tracing: str | None = None  # graph, node: how a CUDA graph's kernels were recorded
    host_slowed_by: str | None = None
    complete: bool = True
    issues: tuple[Issue, ...] = ()
    absences: tuple[Absence, ...] = ()

    @property
    def graph_launches(self) -> int | None:
        """How often a graph was launched, by the API calls; ``None`` without any calls."""
        if not self.calls:
            return None
        return sum(c.calls for c in self.calls if "GraphLaunch" in c.name)

    @property
    def kernel_launches(self) -> int | None:
        """How often a single kernel was launched, by the API calls; ``None`` without any."""
        if not self.calls:
            return None
        return sum(c.calls for c in self.calls if "Launch" in c.name and "Kernel" in c.name)

    def device(self, ordinal: int | None) -> Device | None:
        """The device of this ordinal, ``None`` where the file does not describe it."""
        return next((d for d in self.devices if d.ordinal == ordinal), None)

    def kernel_times(self) -> tuple[KernelTime, ...]:
        """Every kernel with its total time, per process and device, longest first."""
        if self.sums is not None:
            return self.sums
        return tuple(sorted(_sum(self.kernels), key=lambda k: -(k.total_ns or 0.0)))


def _sum(kernels: pa.Table) -> Iterator[KernelTime]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kernels.num_rows == 0:
        return
    keys = ["process", "device", "name", "short_name"]
    table = kernels.select(keys).append_column(
        "ns", pc.subtract(kernels["end_ns"], kernels["start_ns"])
    )
    table = table.append_column("node", pc.is_valid(kernels["graph_node"]).cast(pa.int64()))
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [("ns", "count"), ("ns", "sum"), ("ns", "min"), ("ns", "max"), ("node", "sum")]
    )
    total = pc.sum(grouped["ns_sum"]).as_py()
    for row in grouped.to_pylist():
        yield KernelTime(
            name=row["short_name"] or short_name(row["name"] or UNNAMED),
            name_full=row["name"] or UNNAMED,
            launches=row["ns_count"],
            total_ns=float(row["ns_sum"]),
            mean_ns=row["ns_sum"] / row["ns_count"],
            min_ns=float(row["ns_min"]),
            max_ns=float(row["ns_max"]),
            time_share=row["ns_sum"] / total if total else None,
            device=row["device"],
            process=row["process"],
            in_graphs=row["node_sum"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledKernel:
    """A kernel with its samples. ``share`` (0 to 1) is of all samples in the report."""

    name: str
    samples: float | None
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleReport:
    """Shares of kernels as a sampling profiler saw them: how often, never how long.

    ``samples`` has the columns ``name``, ``samples`` and ``share``; at least one of the two
    numbers is there. ``population`` says in words what was sampled (pods, window, event).
    """

    provenance: Provenance
    samples: pa.Table
    population: str | None = None
    complete: bool = True
    issues: tuple[Issue, ...] = ()
    absences: tuple[Absence, ...] = ()

    @property
    def total(self) -> float | None:
        """The number of samples, ``None`` where only shares are given."""
        import pyarrow.compute as pc

        total: Any = pc.sum(self.samples["samples"]).as_py()
        return None if total is None else float(total)

    def kernels(self) -> tuple[SampledKernel, ...]:
        """Every kernel with its share, largest first.

        A share that the source gives is kept; else it is samples over all samples.
        """
        total = self.total
        rows = [
            SampledKernel(
                name=row["name"],
                samples=row["samples"],
                share=_share(row["share"], row["samples"], total),
            )
            for row in self.samples.to_pylist()
        ]
        return tuple(sorted(rows, key=lambda k: -(k.share or 0.0)))


def _share(given: float | None, samples: float | None, total: float | None) -> float | None:
    if given is not None:
        return given
    if samples is None or not total:
        return None
    return samples / total
