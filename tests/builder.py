"""Writes valid ncu reports from a short description, so that every odd case can be made.

The wire format is written by hand, not with the reader's schema: a mistake in the schema must
not hide in its own mirror. Layout and order of the blocks follow what ncu itself writes: a
session fragment, the source, the first result with its string table, the rest of the session,
then further results.

>>> data = report([Kernel("axpy", metrics={"gpu__time_duration.sum": 1000})])
>>> data[:4]
b'NVR\\x00'
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

Value = int | float | str | None
Dim3 = tuple[int, int, int]


# --- protobuf wire format -------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value)


def blob(tag: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(raw)) + raw


def double(tag: int, value: float) -> bytes:
    return varint(tag << 3 | 1) + struct.pack("<d", value)


def single(tag: int, value: float) -> bytes:
    return varint(tag << 3 | 5) + struct.pack("<f", value)


# --- description ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Float32:
    """A value stored as a 32-bit float, as old releases do for some metrics."""

    value: float


@dataclass(frozen=True)
class Rule:
    """One rule result: a message and, where given, ncu's estimated speed-up in percent."""

    identifier: str
    message: str
    kind: int = 4  # optimisation
    section: str = "SpeedOfLight"
    speedup_pct: float | None = None
    speedup_kind: int = 2  # global


@dataclass(frozen=True)
class Kernel:
    """A result. ``kind`` is kernel, range, cmdlist or graph."""

    name: str
    metrics: Mapping[str, Value | Float32] = field(default_factory=dict)
    instances: Mapping[str, Sequence[tuple[Value, Value]]] = field(default_factory=dict)
    demangled: str = ""
    mangled: str = ""
    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (128, 1, 1)
    context: int = 1
    stream: int = 7
    kind: str = "kernel"
    sections: Sequence[tuple[str, str]] = ()
    rules: Sequence[Rule] = ()
    push_pop: Sequence[str] = ()
    process_id: int = 4242
    process_name: str = "python3.12"
    late_strings: bool = False
    packed_instances: bool = False


@dataclass(frozen=True)
class Device:
    """The GPU, by the attributes that ncu stores with every launch."""

    name: str = "NVIDIA H100 80GB HBM3"
    capability: tuple[int, int] = (9, 0)
    sms: int = 132
    max_sm_khz: int = 1_980_000
    max_memory_khz: int = 2_619_000
    bus_width: int = 5120
    l2_bytes: int = 52_428_800
    warps_per_sm: int = 64

    def attributes(self) -> dict[str, Value]:
        prefix = "device__attribute_"
        return {
            prefix + "display_name": self.name,
            prefix + "compute_capability_major": self.capability[0],
            prefix + "compute_capability_minor": self.capability[1],
            prefix + "multiprocessor_count": self.sms,
            prefix + "max_gpu_frequency_khz": self.max_sm_khz,
            prefix + "max_mem_frequency_khz": self.max_memory_khz,
            prefix + "global_memory_bus_width": self.bus_width,
            prefix + "l2_cache_size": self.l2_bytes,
            prefix + "max_warps_per_multiprocessor": self.warps_per_sm,
        }


# --- messages -------------------------------------------------------------------------------


def value(content: Value | Float32) -> bytes:
    if content is None:
        return b""
    if isinstance(content, Float32):
        return single(2, content.value)
    if isinstance(content, str):
        return blob(1, content)
    if isinstance(content, float):
        return double(3, content)
    return number(4, content) if content < 2**32 else number(5, content)


class Names:
    """The string table: ids in the order of first use, and what is new since the last block."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self._written = 0

    def id(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids))

    def fresh(self) -> bytes:
        names = list(self.ids)[self._written :]
        self._written = len(self.ids)
        return b"".join(blob(1, name) for name in names)


def metric(names: Names, kernel: Kernel, name: str, content: Value | Float32) -> bytes:
    out = number(1, names.id(name))
    if content is not None:
        out += blob(2, value(content))
    elements = kernel.instances.get(name, ())
    if kernel.packed_instances and elements:
        packed = b"".join(blob(3, value(v)) for _, v in elements)
        return out + blob(3, blob(1, value(elements[0][0])) + packed)
    for key, element in elements:
        body = b"" if key is None else blob(1, value(key))
        out += blob(3, body + blob(2, value(element)))
    return out


def rule(content: Rule) -> bytes:
    message = blob(1, content.message) + number(2, content.kind) + blob(4, content.identifier)
    item = blob(1, message)
    if content.speedup_pct is not None:
        item += blob(10, number(1, content.speedup_kind) + double(2, content.speedup_pct))
    items = blob(1, item)
    return (
        blob(1, content.identifier)
        + blob(2, content.identifier)
        + blob(3, items)
        + blob(4, content.section)
    )


def dim3(content: Dim3) -> bytes:
    return b"".join(number(tag, size) for tag, size in zip((1, 2, 3), content, strict=True))


def nvtx(kernel: Kernel) -> bytes:
    stack = b"".join(blob(3, blob(1, name)) for name in kernel.push_pop)
    domain = number(1, 1) + blob(2, "")
    return blob(1, domain) + blob(2, number(1, 77) + blob(2, number(1, 1) + stack))


# Field numbers of (metrics, sections, rules, nvtx, context, stream) by kind of result.
_FIELDS = {
    "kernel": (13, 17, 19, 21, 22, 23),
    "range": (4, 7, None, 10, 11, None),
    "cmdlist": (4, 7, 21, 10, 11, 12),
    "graph": (4, 7, 22, 10, 11, 12),
}
_COUNTS = {"kernel": 2, "range": 7, "cmdlist": 8, "graph": 9}


def result(kernel: Kernel, names: Names) -> bytes:
    metrics, sections, rules, state, context, stream = _FIELDS[kernel.kind]
    out = number(1, 1) + number(2, 1)
    if kernel.kind == "kernel":
        mangled = kernel.mangled or kernel.name
        out += number(3, 1) + number(4, 1) + blob(5, mangled) + blob(6, kernel.name)
        out += blob(7, kernel.demangled) + number(8, 3)
        out += blob(9, dim3((0, 0, 0))) + blob(10, dim3(kernel.grid)) + blob(11, dim3(kernel.block))
        out += number(14, 1) + blob(15, number(1, 1)) + number(16, 0)  # NVIDIA's reader wants them
    for name, content in kernel.metrics.items():
        out += blob(metrics, metric(names, kernel, name, content))
    for identifier, label in kernel.sections:
        out += blob(sections, blob(1, identifier) + blob(2, label) + number(3, 1))
    if rules is not None:
        for content in kernel.rules:
            out += blob(rules, rule(content))
    if kernel.push_pop:
        out += blob(state, nvtx(kernel))
    out += number(context, kernel.context)
    if stream is not None:
        out += number(stream, kernel.stream)
    return out


def device_session(device: Device) -> bytes:
    attributes = b"".join(
        blob(3, blob(1, name.removeprefix("device__attribute_")) + blob(2, value(content)))
        for name, content in device.attributes().items()
    )
    return blob(6, number(1, 0) + blob(2, device.name) + attributes)


def process(kernel: Kernel) -> bytes:
    return number(1, kernel.process_id) + blob(2, "host.invalid") + blob(3, kernel.process_name)


def block(
    *,
    payload: Sequence[bytes] = (),
    counts: Mapping[int, int] | None = None,
    session: bytes = b"",
    strings: bytes = b"",
    owner: bytes = b"",
) -> bytes:
    """One block: its header, and the length-prefixed entries of its payload."""
    body = b"".join(struct.pack("<I", len(entry)) + entry for entry in payload)
    given = {1: 0, 2: 0, **(counts or {})}
    header = b"".join(number(tag, count) for tag, count in sorted(given.items()) if tag < 5)
    if session:
        header += blob(3, session)
    header += blob(4, strings) + number(5, len(body))
    if owner:
        header += blob(6, owner)
    header += b"".join(number(tag, count) for tag, count in sorted(given.items()) if tag > 5)
    return struct.pack("<I", len(header)) + header + body


FILE_HEADER = b"NVR\x00" + struct.pack("<I", 2) + number(1, 7)


def blocks(
    kernels: Sequence[Kernel],
    *,
    device: Device | None = None,
    tool_version: str = "2025.3.1.0 (build 00000000) (public-release)",
    source: bytes = b"\x7fELF not a real cubin",
    command_line: str = "",
) -> list[bytes]:
    """The blocks of a report, so that tests can cut between them."""
    device = device or Device()
    names = Names()
    host = blob(1, "Linux") + blob(3, "CPU") + blob(4, "x86_64") + blob(5, "host.invalid")
    owner = process(kernels[0]) if kernels else b""
    out = [block(session=number(2, 1_750_000_000) + blob(3, host), owner=owner)]
    session = [
        device_session(device),
        blob(8, blob(1, "Nsight Compute Target") + blob(2, tool_version)),
        blob(4, host + blob(7, blob(1, "192.0.2.7") + number(2, 1))),
    ]
    if command_line:
        session.append(blob(11, command_line))
    for index, kernel in enumerate(kernels):
        full = replace(kernel, metrics={**device.attributes(), **kernel.metrics})
        if index == 0 and source:
            entry = number(1, 1) + blob(4, source) + number(6, 9 << 16)
            out.append(block(payload=[entry], counts={1: 1}, owner=owner))
        body = result(full, names)
        strings = b"" if kernel.late_strings else names.fresh()
        counts = {_COUNTS[kernel.kind]: 1}
        out.append(block(payload=[body], counts=counts, strings=strings, owner=process(kernel)))
        if index == 0:
            out.extend(block(session=part, owner=owner) for part in session)
    late = names.fresh()
    if late:
        out.append(block(strings=late, owner=owner))
    return out


def report(kernels: Sequence[Kernel], **options: object) -> bytes:
    """A whole report. Options are those of :func:`blocks`."""
    return FILE_HEADER + b"".join(blocks(kernels, **options))  # type: ignore[arg-type]
