"""Trace events as columns. What a profiler wrote, by its category; everything else is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from solscope.model import trace
from solscope.model.kernel_name import short_name
from solscope.model.trace import CallTotal

if TYPE_CHECKING:
    import pyarrow as pa

# Categories of Kineto; capitalised ones are those of torch up to 1.12.
KERNELS = frozenset({"kernel", "Kernel"})
COPIES = frozenset({"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"})
CALLS = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime", "Runtime", "Driver"})
HOST_MARKS = frozenset({"user_annotation", "nvtx"})
GPU_MARKS = frozenset({"gpu_user_annotation"})

# What else torch's profilers write, of all years and back ends; other tools have other words.
OTHERS = frozenset(
    (
        *("cpu_op", "Operator", "cpu_instant_event", "python_function", "Python", "overhead"),
        *("ac2g", "fwdbwd", "Trace", "cuda_sync", "cuda_event", "collective_comm"),
        *("cuda_profiler_range", "xpu_runtime", "mtia_runtime", "mtia_ccp_events"),
        *("privateuse1_runtime", "privateuse1_driver", "hpu_op", "glow_runtime", "Marker"),
    )
)
_TORCHS = KERNELS | COPIES | CALLS | HOST_MARKS | GPU_MARKS | OTHERS

# Above 2^43 microseconds a double no longer holds every nanosecond.
EXACT_BELOW_US = 8.7e12

_KIND = re.compile(r"\b([HDAP])to([HDAP])\b")


class Arguments(msgspec.Struct):
    """Of an event's arguments, those that are used. Types vary between exporters."""

    device: Any = None
    stream: Any = None
    correlation: Any = None
    grid: Any = None
    block: Any = None
    bytes: Any = None
    graph_node: Any = msgspec.field(default=None, name="graph node id")
    bytes_titled: Any = msgspec.field(default=None, name="Bytes")


class Event(msgspec.Struct):
    """A trace event; times in microseconds, with a fraction."""

    ph: str = ""
    name: Any = None
    cat: str | None = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Arguments | None = None


class Table:
    """Columns that grow by batches."""

    def __init__(self, target: str) -> None:
        self._schema = trace.schemas()[target]
        self._parts: list[pa.Table] = []
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        """One event, in the order of the schema's columns."""
        self._rows.append(row)

    def flush(self) -> None:
        """Turn what was added since into arrow columns."""
        import pyarrow as pa

        if not self._rows:
            return
        arrays = [
            pa.array(values, pa.string()).dictionary_encode()
            if pa.types.is_dictionary(field.type)
            else pa.array(values, field.type)
            for field, values in zip(self._schema, zip(*self._rows, strict=True), strict=True)
        ]
        self._parts.append(pa.Table.from_arrays(arrays, names=self._schema.names))
        self._rows.clear()

    def table(self) -> pa.Table:
        """All of it, each name once."""
        import pyarrow as pa

        self.flush()
        if not self._parts:
            return self._schema.empty_table()
        return pa.concat_tables(self._parts).unify_dictionaries().cast(self._schema)


class Collector:
    """Sorts events into tables while they stream by."""

    def __init__(self) -> None:
        self.kernels = Table("kernels")
        self.copies = Table("copies")
        self.annotations = Table("annotations")
        self.unusable = 0
        self.rounded = 0
        self.python_frames = 0
        self.is_torchs = False
        self.foreign: Counter[str] = Counter()
        self.gpu_names: dict[str, None] = {}
        self._calls: dict[str, list[float]] = {}

    def take(self, events: Sequence[Event]) -> None:
        """Sort one batch."""
        for event in events:
            category = event.cat
            if event.ph not in ("X", "B"):
                continue
            if category not in _TORCHS:
                self.foreign[category or "(none)"] += 1
                continue
            self.is_torchs = True
            if event.ph != "X":
                self.unusable += category in KERNELS  # a begin, whose end stands elsewhere
                continue
            if category in KERNELS:
                self._kernel(event)
            elif category in CALLS:
                self._call(event)
            elif category in COPIES:
                self._copy(event)
            elif category in HOST_MARKS or category in GPU_MARKS:
                self._mark(event, "gpu" if category in GPU_MARKS else "host")
            elif category == "python_function":
                self.python_frames += 1
        for table in (self.kernels, self.copies, self.annotations):
            table.flush()

    def calls(self) -> tuple[CallTotal, ...]:
        """The API calls, summed by name."""
        found = [
            CallTotal(name=name, calls=int(count), total_ns=spent)
            for name, (count, spent) in self._calls.items()
        ]
        return tuple(sorted(found, key=lambda call: -call.calls))

    def _span(self, event: Event) -> tuple[int, int] | None:
        begin, spent = event.ts, event.dur
        if not isinstance(begin, int | float) or not isinstance(spent, int | float) or spent < 0:
            self.unusable += 1
            return None
        if isinstance(begin, float) and begin > EXACT_BELOW_US:
            self.rounded += 1
        start = round(begin * 1000)
        end = start + round(spent * 1000)
        if abs(start) >> 63 or abs(end) >> 63:
            self.unusable += 1
            return None
        return start, end

    def _kernel(self, event: Event) -> None:
        span = self._span(event)
        if span is None:
            return
        args = event.args or _NO_ARGUMENTS
        name = _name(event)
        self.kernels.add(
            (
                *span,
                name,
                short_name(name),
                *_place(event, args),
                *_dim3(args.grid),
                *_dim3(args.block),
                _integer(args.graph_node, 63),
            )
        )

    def _copy(self, event: Event) -> None:
        span = self._span(event)
        if span is None:
            return
        args = event.args or _NO_ARGUMENTS
        size = args.bytes if args.bytes is not None else args.bytes_titled
        self.copies.add((*span, _copy_kind(_name(event)), *_place(event, args), _integer(size, 63)))

    def _call(self, event: Event) -> None:
        span = self._span(event)
        if span is None:
            return
        total = self._calls.setdefault(_name(event), [0, 0.0])
        total[0] += 1
        total[1] += span[1] - span[0]

    def _mark(self, event: Event, side: str) -> None:
        span = self._span(event)
        if span is None:
            return
        device = _integer(event.pid, 31) if side == "gpu" else None
        process = _integer(event.pid, 31) if side == "host" else None
        self.annotations.add((*span, _name(event), side, device, process, _integer(event.tid, 63)))


_NO_ARGUMENTS = Arguments()


def _name(event: Event) -> str:
    return event.name if isinstance(event.name, str) and event.name else trace.UNNAMED


def _place(event: Event, args: Arguments) -> tuple[int | None, ...]:
    """Device, stream, process, correlation. A GPU event's pid is the device, not a process."""
    device = _integer(args.device if args.device is not None else event.pid, 31)
    stream = _integer(args.stream if args.stream is not None else event.tid, 63)
    return device, stream, None, _integer(args.correlation, 63)


def _integer(value: Any, bits: int) -> int | None:
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) < 19 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << bits) <= value < (1 << bits) else None


def _dim3(value: Any) -> tuple[int | None, int | None, int | None]:
    if isinstance(value, list) and len(value) == 3:
        return _integer(value[0], 31), _integer(value[1], 31), _integer(value[2], 31)
    return None, None, None


def _copy_kind(name: str) -> str:
    """``Memcpy HtoD (Pageable -> Device)`` to ``HtoD``; copies within a device are ``DtoD``."""
    if name.startswith("Memset"):
        return "Memset"
    found = _KIND.search(name)
    return f"{found[1]}to{found[2]}" if found else name
