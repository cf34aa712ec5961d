"""Blocks in, Report out: merges the append log, names the launches, finds what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solscope.model.finding import Issue, Severity
from solscope.model.report import (
    Device,
    Dim3,
    KernelLaunch,
    MetricValue,
    Provenance,
    Report,
    Session,
    WorkloadKind,
)
from solscope.reports.ncu_rep import container, schema
from solscope.reports.ncu_rep.details import LazyDetails, text
from solscope.reports.ncu_rep.values import LazyMetrics, Strings, value_of

_TYPES = {
    WorkloadKind.KERNEL: "Kernel",
    WorkloadKind.RANGE: "Range",
    WorkloadKind.CMDLIST: "Cmdlist",
    WorkloadKind.GRAPH: "Graph",
}
_ATTRIBUTE = "device__attribute_"
_UNLIMITED = 2**31  # what ncu stores where no --launch-count was given lies above


def assemble(
    scan: container.Scan,
    *,
    path: str,
    sha256: str,
    size: int,
    format_name: str,
    issues: list[Issue],
) -> Report:
    """The report of a scan. Never raises: what cannot be decoded becomes an issue."""
    strings = Strings(scan.strings)
    session = container.parse(schema.messages()["Session"], b"".join(scan.session))
    if session is None:
        issues.append(
            Issue(code="damaged", severity=Severity.WARNING, what="session details: left out")
        )
        session = schema.messages()["Session"]()
    devices = _SessionDevices(session)
    launches = _launches(scan, strings, devices, session, issues)
    # One launch is enough to tell: names are stored before their first use.
    last = launches[-1].metrics if launches else None
    names_missing = isinstance(last, LazyMetrics) and last.unresolved > 0
    issues.extend(_signs_of_a_cut(scan, session, launches, names_missing))
    versions = {text(v.provider): text(v.version) for v in session.versions}
    return Report(
        provenance=Provenance(
            path=path,
            sha256=sha256,
            size_bytes=size,
            format=format_name,
            tool_name="Nsight Compute",
            tool_version=_tool_version(versions),
        ),
        launches=launches,
        devices=_devices(launches, devices),
        session=_session(session, versions),
        complete=not any(i.code == container.INCOMPLETE for i in issues) and not scan.is_cut,
        issues=tuple(issues),
    )


def _tool_version(versions: Mapping[str, str]) -> str | None:
    for provider in ("Nsight Compute Target", "Nsight Compute", "Nsight Compute Host"):
        if provider in versions:
            return versions[provider]
    return None


def _launches(
    scan: container.Scan,
    strings: Strings,
    devices: _SessionDevices,
    session: Any,
    issues: list[Issue],
) -> tuple[KernelLaunch, ...]:
    launches: list[KernelLaunch] = []
    processes: dict[bytes, tuple[int | None, str | None]] = {}
    known_devices: dict[tuple[object, ...], Device] = {}
    for index, span in enumerate(scan.results):
        assert span.kind is not None
        message = container.parse(schema.messages()[_TYPES[span.kind]], span.data)
        if message is None:
            issues.append(
                Issue(
                    code="damaged",
                    severity=Severity.WARNING,
                    what=f"result {index} cannot be decoded: left out",
                )
            )
            continue
        if span.process not in processes:
            processes[span.process] = _process(span.process, session)
        process_id, process_name = processes[span.process]
        metrics = LazyMetrics(list(message.metrics), strings)
        launches.append(
            KernelLaunch(
                index=len(launches),
                kind=span.kind,
                metrics=metrics,
                device=_device(metrics, devices, known_devices),
                details=LazyDetails(
                    list(message.sections), list(getattr(message, "rules", ())), message.nvtx
                ),
                context_id=message.context_id if message.HasField("context_id") else None,
                stream_id=_stream(message),
                process_id=process_id,
                process_name=process_name,
                **_naming(span.kind, message, metrics),
            )
        )
    return tuple(launches)


def _stream(message: Any) -> int | None:
    if "stream_id" not in message.DESCRIPTOR.fields_by_name or not message.HasField("stream_id"):
        return None
    return int(message.stream_id)


def _naming(kind: WorkloadKind, message: Any, metrics: LazyMetrics) -> dict[str, Any]:
    """Names and geometry. A C kernel has no demangled name: function, then mangled stand in."""
    if kind is not WorkloadKind.KERNEL:
        stored = text(message.display_name) if kind is WorkloadKind.CMDLIST else ""
        name = stored or kind.value
        return {"name": name, "name_full": name}
    mangled = text(message.mangled)
    function = text(message.function) or mangled
    return {
        "name": function or "(unnamed)",
        "name_full": text(message.demangled) or function or "(unnamed)",
        "mangled": mangled or None,
        "grid": _dim3(message, "grid"),
        "block": _dim3(message, "block"),
    }


def _dim3(message: Any, name: str) -> Dim3 | None:
    if not message.HasField(name):
        return None
    value = getattr(message, name)
    return (int(value.x), int(value.y), int(value.z))


def _process(raw: bytes, session: Any) -> tuple[int | None, str | None]:
    process = container.parse(schema.messages()["Process"], raw) if raw else None
    if process is None or not process.HasField("process_id"):
        # Files of 2019 hold one process, in the session.
        return (session.process_id if session.HasField("process_id") else None), None
    return process.process_id, text(process.name).rstrip("\0") or None


def _number(value: MetricValue | None) -> float | None:
    return float(value) if isinstance(value, int | float) and value == value else None


def _int(value: MetricValue | None) -> int | None:
    number = _number(value)
    return None if number is None or abs(number) > 1e18 else int(number)


def _device(
    metrics: LazyMetrics, devices: _SessionDevices, known: dict[tuple[object, ...], Device]
) -> Device:
    """The device of a launch, by the attributes stored with the launch, else by the session."""
    get = metrics.get
    names = ("display_name", "compute_capability_major", "compute_capability_minor")
    ordinal = _int(get("launch__device_id"))
    if ordinal is None and len(devices) == 1:
        ordinal = devices.only()  # a metric list need not hold the id; one device is that device
    key: tuple[object, ...] = (*(get(_ATTRIBUTE + n) for n in names), ordinal)
    if key[0] is None and key[1] is None:
        return devices.get(ordinal)
    if key not in known:
        known[key] = _from_attributes(lambda name: get(_ATTRIBUTE + name), ordinal=ordinal)
    return known[key]


class _SessionDevices:
    """The devices that the session lists, decoded only when a launch does not describe its own."""

    def __init__(self, session: Any) -> None:
        self._messages = {message.id: message for message in session.devices}

    def __len__(self) -> int:
        return len(self._messages)

    def only(self) -> int:
        """The id of the one device."""
        (ordinal,) = self._messages
        return int(ordinal)

    def get(self, ordinal: int | None) -> Device:
        """A device by its id; the first where the id is unknown."""
        message = self._messages.get(ordinal) or next(iter(self._messages.values()), None)
        if message is None:
            return Device(name=None, compute_capability=None)
        values = {
            text(a.name).removeprefix(_ATTRIBUTE): value_of(a.value) for a in message.attributes
        }
        device = _from_attributes(values.get, ordinal=message.id)
        if device.name is None and message.name:
            return replace(device, name=text(message.name))
        return device

    def all(self) -> tuple[Device, ...]:
        """Every device listed."""
        return tuple(self.get(ordinal) for ordinal in self._messages)


def _from_attributes(get: Any, *, ordinal: int | None) -> Device:
    name = get("display_name") or get("name")
    major, minor = _int(get("compute_capability_major")), _int(get("compute_capability_minor"))
    capability = (major, minor) if major is not None and minor is not None else None
    bus_width = get("global_memory_bus_width")
    return Device(
        name=str(name) if name is not None else None,
        compute_capability=capability,
        sm_count=_int(get("multiprocessor_count")),
        ordinal=ordinal,
        max_sm_clock_khz=_number(get("max_gpu_frequency_khz") or get("clock_rate")),
        max_memory_clock_khz=_number(get("max_mem_frequency_khz") or get("memory_clock_rate")),
        memory_bus_width_bits=_int(bus_width if bus_width is not None else get("fb_bus_width")),
        max_warps_per_sm=_int(get("max_warps_per_multiprocessor")),
        l2_bytes=_int(get("l2_cache_size")),
        memory_bytes=_int(get("total_memory")),
    )


def _devices(launches: Sequence[KernelLaunch], session: _SessionDevices) -> tuple[Device, ...]:
    """The devices that launches ran on; those of the session where there is no launch."""
    used = tuple(dict.fromkeys(launch.device for launch in launches))
    return used or session.all()


def _session(message: Any, versions: Mapping[str, str]) -> Session:
    target = message.target if message.HasField("target") else message.host
    settings = message.settings
    return Session(
        created_unix_s=message.created if message.HasField("created") else None,
        host_name=text(target.computer_name) or None,
        ip_addresses=tuple(text(a.address) for a in target.ip_addresses),
        os_name=text(target.os_name) or None,
        executable=text(message.executable.path) or None,
        arguments=text(message.executable.arguments) or None,
        work_directory=text(message.executable.directory) or None,
        profiler_command_line=text(message.command_line) or None,
        versions=dict(versions),
        clock_control=text(settings.clock_control) or None,
        replay_mode=text(settings.replay_mode) or None,
    )


def _signs_of_a_cut(
    scan: container.Scan, session: Any, launches: Sequence[KernelLaunch], names_missing: bool
) -> list[Issue]:
    """What tells that whole blocks are missing at the end.

    ncu writes the session's device attributes and system right after the first result, a
    result's source or graph before the result, and names at the first use; so a report that
    lacks what must follow was cut. A cut between two later results leaves no trace.
    """
    if scan.is_cut:
        return []
    signs: list[Issue] = []
    if scan.ends_with_source:
        signs.append(container.cut("the last entry announces a result that is not there"))
    elif not launches:
        signs.append(
            Issue(
                code="no-results",
                severity=Severity.WARNING,
                what="the report holds no result: the profiler recorded nothing",
            )
        )
    elif not session.devices or not (session.HasField("target") or scan.ends_with_result):
        # The target system is stored after the devices, unless it is the host itself.
        signs.append(container.cut("the session details that follow the first result are missing"))
    elif names_missing:
        signs.append(container.cut("names of metrics are missing"))
    wanted = session.settings.filter.count
    if 0 < len(launches) < wanted < _UNLIMITED:
        signs.append(
            Issue(
                code="fewer-results",
                severity=Severity.INFO,
                what=f"{len(launches)} of the {wanted} results asked for: the target launched "
                "fewer, or the file was cut between two results",
            )
        )
    return signs
