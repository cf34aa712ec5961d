"""A trace of PyTorch's profiler (Kineto) in, a timeline out: .json and .json.gz.

NVIDIA's and AMD's traces alike; the vendor is said where the file tells it. The trace is
streamed: memory holds the GPU's events in columns and a few megabytes of text, never the whole.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from solscope.errors import ReportError
from solscope.model import trace
from solscope.model.finding import Issue, Severity
from solscope.model.report import Device, Provenance
from solscope.model.trace import TimelineReport
from solscope.reports import missing
from solscope.reports.kineto.events import Collector, Event
from solscope.reports.kineto.stream import Trace

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "torch-trace"

NEWEST_SCHEMA = 1
"""The only schemaVersion that Kineto has written (2020 to 2026)."""

_TORCH_KEYS = frozenset({"schemaVersion", "deviceProperties", "distributedInfo"})
_MARKS = re.compile(rb'"traceEvents"\s*:|"schemaVersion"\s*:\s*\d|"deviceProperties"\s*:')
_BARE_LIST = re.compile(rb'\[\s*\{[^{}]{0,2000}"ph"\s*:\s*"')
_OBJECT = re.compile(rb'\{\s*(?:"|\})')


def recognises(head: bytes, path: str) -> bool:
    """JSON with a list of trace events, also where large metadata stands before it."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"["):
        return _BARE_LIST.match(text) is not None
    return _OBJECT.match(text) is not None and (
        _MARKS.search(text) is not None or b'"torch_profiler_kwargs"' in text
    )


def read(path: str, sha256: str, **options: object) -> TimelineReport:
    """The trace as a timeline.

    Raises ReportError where the JSON is damaged or cut (a trace that is still being written is
    cut), and for an unknown schema version.
    """
    stream = Trace(path)
    collector = Collector()
    for events in stream.batches(_decoder()):
        collector.take(events)
    around = stream.surroundings
    _refuse_unknown(around, path)
    _refuse_foreign(collector, around, path)
    devices = tuple(_devices(around))
    kernels = collector.kernels.table()
    distributed = around.get("distributedInfo")
    ranks: Mapping[str, Any] = distributed if isinstance(distributed, dict) else {}
    report = TimelineReport(
        provenance=Provenance(
            path=path,
            sha256=sha256,
            size_bytes=os.path.getsize(path),
            format=NAME,
            tool_name="kineto",
            tool_version=_versions(around),
        ),
        kernels=kernels,
        graphs=trace.empty("graphs"),
        copies=collector.copies.table(),
        annotations=collector.annotations.table(),
        calls=collector.calls(),
        vendor=_vendor(around, devices, collector),
        devices=devices,
        rank=_integer(ranks.get("rank")),
        world_size=_integer(ranks.get("world_size")),
        graph_tracing="node",
        host_slowed_by=_host_slowed_by(around, collector),
        issues=(*_issues(collector), *_repeated(kernels)),
    )
    return _with_missing_kernels(report)


@lru_cache(maxsize=1)
def _decoder() -> msgspec.json.Decoder[list[Any]]:
    return msgspec.json.Decoder(list[Event])


def _refuse_unknown(around: Mapping[str, Any], path: str) -> None:
    version = around.get("schemaVersion")
    if version is not None and version != NEWEST_SCHEMA:
        raise ReportError(
            f"schema version {version!r} of a torch trace is not known; known is {NEWEST_SCHEMA}",
            where=path,
            hint="update solscope",
        )


def _refuse_foreign(collector: Collector, around: Mapping[str, Any], path: str) -> None:
    """Browsers, JAX and converters of nsys's exports write the same JSON with other meanings."""
    if collector.is_torchs or not collector.foreign or around.keys() & _TORCH_KEYS:
        return
    shown = ", ".join(f"{name} ({count})" for name, count in collector.foreign.most_common(6))
    raise ReportError(
        f"a trace of events that is not torch's profiler's; its categories are {shown}",
        where=path,
        hint="give a trace of torch.profiler, or nsys's own export (`nsys export -t sqlite`)",
    )


def _devices(around: Mapping[str, Any]) -> Iterator[Device]:
    listed = around.get("deviceProperties")
    for row in listed if isinstance(listed, list) else ():
        if not isinstance(row, dict):
            continue
        major, minor = _integer(row.get("computeMajor")), _integer(row.get("computeMinor"))
        name = row.get("name")
        yield Device(
            name=name if isinstance(name, str) and name else None,
            compute_capability=None if major is None or minor is None else (major, minor),
            sm_count=_integer(row.get("numSms")),
            ordinal=_integer(row.get("id")),
            memory_bytes=_integer(row.get("totalGlobalMem")),
        )


def _vendor(
    around: Mapping[str, Any], devices: tuple[Device, ...], collector: Collector
) -> str | None:
    """By the runtime that is named, else by the calls, else by the device's name."""
    keys = set(around)
    calls = {call.name[:3] for call in collector.calls()}
    names = " ".join(device.name or "" for device in devices)
    if keys & {"hip_runtime_version", "hip_driver_version", "roctracer_version"}:
        return "AMD"
    if keys & {"cuda_runtime_version", "cuda_driver_version", "cupti_version"}:
        return "NVIDIA"
    if "hip" in calls or "AMD" in names:
        return "AMD"
    if "cud" in calls or "NVIDIA" in names or "GeForce" in names or "Tesla" in names:
        return "NVIDIA"
    return None


def _versions(around: Mapping[str, Any]) -> str | None:
    """What the trace says of its tools; Kineto writes no version of its own."""
    tools = ("cupti", "cuda_runtime", "cuda_driver", "roctracer", "hip_runtime")
    found = [f"{tool} {around[f'{tool}_version']}" for tool in tools if f"{tool}_version" in around]
    return ", ".join(found) or None


def _host_slowed_by(around: Mapping[str, Any], collector: Collector) -> str | None:
    """Python frames cost microseconds each; shapes and memory records cost as well."""
    if collector.python_frames:
        return f"Python stacks ({collector.python_frames} frames recorded)"
    costly = [k for k in ("with_stack", "profile_memory") if around.get(k) in (1, True)]
    return ", ".join(costly) or None


def _issues(collector: Collector) -> Iterator[Issue]:
    if collector.unusable:
        yield Issue(
            code="rows-without-duration",
            severity=Severity.WARNING,
            what=f"{collector.unusable} events have no usable begin or duration; left out",
        )
    if collector.rounded:
        yield Issue(
            code="times-rounded",
            severity=Severity.INFO,
            what=f"{collector.rounded} begins are too large for exact nanoseconds (to 1 us)",
        )


def _repeated(kernels: pa.Table) -> Iterator[Issue]:
    """A stream runs one kernel at a time: what begins and ends there together is one."""
    place = ["start_ns", "end_ns", "device", "stream", "name"]
    distinct = kernels.group_by(place, use_threads=False).aggregate([]).num_rows
    if distinct < kernels.num_rows:
        yield Issue(
            code="repeated-kernels",
            severity=Severity.WARNING,
            what=f"{kernels.num_rows - distinct} kernels stand in the trace twice, with one begin, "
            "end, device and stream, and count twice: was it merged with itself?",
        )


def _with_missing_kernels(report: TimelineReport) -> TimelineReport:
    if report.kernels.num_rows:
        return report
    issue, absence = missing.explain(
        launches=report.kernel_launches,
        graph_launches=report.graph_launches,
        graph_rows=0,
        said=(),
        where="the trace has no kernel",
    )
    return replace(report, issues=(issue, *report.issues), absences=(absence,))


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
