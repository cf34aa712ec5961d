"""May the counters be read, and does somebody else hold them?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from solscope.capture.preflight.view import (
    chip,
    container_name,
    counters_restricted,
    found,
    has_sys_admin,
    inside_text,
    namespace_level,
    was_looked_inside,
)
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding, Severity

STRICT_LEVELS = frozenset({"baseline", "restricted"})
_DCGM = re.compile(r"dcgm", re.IGNORECASE)
_AGENT = re.compile(r"zymtrace|parca|pyroscope|nsight|nsys|dynolog", re.IGNORECASE)
_DRIVER_POD = re.compile(r"nvidia-driver-daemonset|nvidia-gpu-driver|driver-installer")
_ADMIN = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Counter permission on the node that the pod really runs on, and other holders."""
    yield from _permission(workload)
    yield from _dcgm(workload)
    yield from _agents(workload)
    yield from _neighbours(workload)
    yield from _lock(workload)


def _permission(workload: WorkloadSnapshot) -> Iterator[Finding]:
    where = f"node {workload.node.name}" if workload.node else "node"
    restricted = counters_restricted(workload)
    level, level_source = namespace_level(workload)
    yield from _paranoid(workload)
    if restricted is False:
        yield found(
            "counters-open",
            Severity.INFO,
            where,
            "the driver lets every user read GPU counters: no capability is needed",
            "nothing to do: keep the sister without extra capabilities",
            "RmProfilingAdminOnly: 0 in /proc/driver/nvidia/params",
        )
    elif restricted and has_sys_admin(workload):
        yield found(
            "counters-by-capability",
            Severity.INFO,
            where,
            "the driver keeps counters for administrators, and the container holds CAP_SYS_ADMIN",
            "keep the capability in the sister",
            "RmProfilingAdminOnly: 1 in /proc/driver/nvidia/params",
        )
    elif restricted:
        strict = level in STRICT_LEVELS
        yield found(
            "counter-permission",
            Severity.BLOCKS if strict else Severity.WARNING,
            where,
            "the driver keeps GPU counters for administrators (RmProfilingAdminOnly 1) and the "
            "container lacks CAP_SYS_ADMIN"
            + (f"; the namespace's level {level} refuses that capability" if strict else ""),
            _lift(workload) + ("" if strict else "; or let the sister add CAP_SYS_ADMIN"),
            "RmProfilingAdminOnly: 1 in /proc/driver/nvidia/params",
            f"Pod Security: {level or 'unknown'} ({level_source})",
        )
    else:
        yield found(
            "counter-permission-unknown",
            Severity.WARNING if level in STRICT_LEVELS else Severity.INFO,
            where,
            "whether the driver lets users read GPU counters is not known",
            ("ask" if was_looked_inside(workload) else "run with --exec, or ask")
            + " the node's owner for RmProfilingAdminOnly in /proc/driver/nvidia/params: 0 needs "
            "nothing, 1 needs CAP_SYS_ADMIN",
            f"missing: {_why_unread(workload)}",
        )


def _paranoid(workload: WorkloadSnapshot) -> Iterator[Finding]:
    text = (inside_text(workload, "paranoid") or "").strip()
    if text.isdigit() and int(text) > 2:
        yield found(
            "perf-event-paranoid",
            Severity.INFO,
            "node",
            f"perf_event_paranoid is {text}: it stops CPU sampling, and does not gate ncu or GPU "
            "tracing",
            "nothing to do",
            "/proc/sys/kernel/perf_event_paranoid",
        )


def _why_unread(workload: WorkloadSnapshot) -> str:
    if workload.inside is None:
        return "no look inside was asked for (--exec)"
    return workload.inside.unread.get("params", "/proc/driver/nvidia/params has no such line")


def _lift(workload: WorkloadSnapshot) -> str:
    """What the node's owner must do, in the node's own terms."""
    if any(_DRIVER_POD.search(name) for name, _ in _on_node(workload)):
        return (
            "the driver container of the GPU operator loads the module: set "
            "NVreg_RestrictProfilingToAdminUsers=0 through the operator (kernel module "
            "configuration), because the host's own modprobe.d is not read"
        )
    system = inside_text(workload, "os") or ""
    rebuild = "dracut -f or update-initramfs -u, by the node's system"
    if re.search(r"^ID(?:_LIKE)?=.*(?:rhel|fedora|centos|rocky)", system, re.MULTILINE):
        rebuild = "dracut -f"
    elif re.search(r"^ID(?:_LIKE)?=.*(?:debian|ubuntu)", system, re.MULTILINE):
        rebuild = "update-initramfs -u"
    return (
        f"ask the host's owner: `{_ADMIN}` in /etc/modprobe.d, rebuild the initial RAM disk "
        f"({rebuild}), reload the module or reboot; it cannot be lifted from inside"
    )


def _on_node(workload: WorkloadSnapshot) -> Iterator[tuple[str, str]]:
    """Names and images of what runs on the node."""
    for pod in workload.seen("node-pods"):
        name = str((pod.get("metadata") or {}).get("name"))
        images = [str(c.get("image")) for c in (pod.get("spec") or {}).get("containers") or ()]
        yield name, " ".join(images)


def _dcgm(workload: WorkloadSnapshot) -> Iterator[Finding]:
    exporters = [n for n, images in _on_node(workload) if _DCGM.search(n) or _DCGM.search(images)]
    watched = _watched_fields(workload)
    where = f"node {workload.node.name}" if workload.node else "node"
    fact = workload.related.get("node-pods")
    if not exporters and not watched:
        if fact is not None and fact.is_unknown:
            yield found(
                "counter-holders-unknown",
                Severity.INFO,
                where,
                "whether DCGM or another profiler holds the counters on the node is not known",
                "ask the operator whether dcgm-exporter watches DCGM_FI_PROF_* fields there",
                f"missing: {fact.missing}",
            )
        return
    row = chip(workload)
    own_unit = row is not None and row.has_own_monitor_unit
    quiet = own_unit and not watched
    yield found(
        "counters-held-by-dcgm",
        Severity.INFO if quiet else Severity.WARNING,
        where,
        "DCGM runs on the node"
        + (" and watches DCGM_FI_PROF_* fields" if watched else "")
        + "; it and ncu cannot both hold the performance monitors"
        + (
            ", though on Hopper and newer it can use a unit of its own: check that it watches "
            "DCGM_FI_PROF_* at all before blaming it"
            if own_unit
            else ""
        ),
        "wrap the capture in `dcgmi profile --pause` and `dcgmi profile --resume`, with a trap so "
        "that resume always runs; or have the PROF fields taken off the exporter's list",
        *(f"pod {name} on the node" for name in exporters[:3]),
        *(f"field {name}" for name in watched[:3]),
    )


def _watched_fields(workload: WorkloadSnapshot) -> list[str]:
    fields: list[str] = []
    for config in workload.seen("configmaps"):
        data: Mapping[str, Any] = config.get("data") or {}
        for text in data.values():
            fields += re.findall(r"^\s*(DCGM_FI_PROF_\w+)", str(text), re.MULTILINE)
    return list(dict.fromkeys(fields))


def _agents(workload: WorkloadSnapshot) -> Iterator[Finding]:
    agents = [n for n, images in _on_node(workload) if _AGENT.search(n) or _AGENT.search(images)]
    if agents:
        yield found(
            "profiler-agent-on-node",
            Severity.WARNING,
            f"node {workload.node.name}" if workload.node else "node",
            "another profiler's agent runs on the node; it may inject itself or hold counters",
            "exclude the sister's namespace or labels from it for the time of the capture",
            *(f"pod {name}" for name in agents[:3]),
        )


def _neighbours(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Processes that nvidia-smi lists and this container does not have."""
    inside = workload.inside
    if inside is None:
        return
    own = {process.pid for process in inside.processes}
    rows = [line.split(",") for line in inside.texts.get("smi_apps", "").splitlines()]
    others = [row for row in rows if row[0].strip().isdigit() and int(row[0]) not in own]
    if others and own:
        pids = ", ".join(row[0].strip() for row in others)
        yield found(
            "gpu-shared-with-other-process",
            Severity.WARNING,
            container_name(workload),
            f"nvidia-smi lists processes on the GPU that this container does not have: {pids}",
            "take an exclusive GPU: replay needs it alone; unless these are the server's own "
            "numbers on the host",
            *(", ".join(field.strip() for field in row) for row in others[:3]),
        )


def _lock(workload: WorkloadSnapshot) -> Iterator[Finding]:
    locks = inside_text(workload, "locks")
    if not locks or "nsight-compute-lock" not in locks:
        return
    owner = next((w for w in locks.split()[2:3]), "?")
    match = re.search(r"uid=(\d+)", inside_text(workload, "id") or "")
    if match and match[1] == owner:
        return
    yield found(
        "stale-lock-file",
        Severity.WARNING,
        container_name(workload),
        f"a lock file of Nsight Compute belongs to user {owner}; another user's ncu cannot open it",
        "set TMPDIR to a folder of the sister's own",
        locks.splitlines()[0],
    )
