"""What several rules ask of a snapshot, each with its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from solscope.capture.preflight import tables
from solscope.model.cluster import EnvVar, WorkloadSnapshot
from solscope.model.finding import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An environment variable that is set, its value where it may be shown, and where."""

    name: str
    value: str | None
    where: str

    @property
    def shown(self) -> str:
        """``NAME=value``, or the name alone."""
        return self.name if self.value is None else f"{self.name}={self.value}"


def settings(workload: WorkloadSnapshot, name: str) -> Iterator[Setting]:
    """Every place that sets a variable: the process, the live pods, the template."""
    if workload.inside is not None:
        yield from _among(workload.inside.env, name, "the running container's environment")
    for pod in workload.pods:
        container = pod.container(workload.container or "")
        if container is not None:
            yield from _among(container.env, name, f"pod {pod.name}, container {container.name}")
    if workload.server is not None:
        yield from _among(workload.server.env, name, f"template, container {workload.server.name}")


def _among(env: tuple[EnvVar, ...], name: str, where: str) -> Iterator[Setting]:
    for var in env:
        if var.name == name and var.value != "":
            yield Setting(name=name, value=var.value, where=where)


def setting(workload: WorkloadSnapshot, name: str) -> Setting | None:
    """The setting that counts: the nearest to the process."""
    return next(settings(workload, name), None)


def inside_text(workload: WorkloadSnapshot, name: str) -> str | None:
    """An answer from inside the container."""
    return None if workload.inside is None else workload.inside.text(name)


def was_looked_inside(workload: WorkloadSnapshot) -> bool:
    """Whether the container answered anything: another look inside would tell no more."""
    return workload.inside is not None and bool(workload.inside.texts)


def product(workload: WorkloadSnapshot) -> tuple[str | None, str]:
    """The GPU's product name and where it is from, or what is missing to know it."""
    smi = inside_text(workload, "smi")
    if smi:
        return smi.splitlines()[0].split(",")[0].strip(), "nvidia-smi in the container"
    node = workload.node
    if node is None:
        return None, "no node is known; a GPU node's label nvidia.com/gpu.product says it"
    if node.product.value is not None:
        return node.product.value, node.product.source
    return None, node.product.missing or "the node has no label for it"


def chip(workload: WorkloadSnapshot) -> tables.ChipRow | None:
    """The chip by the product's name, else by compute capability."""
    name, _ = product(workload)
    row = tables.chip_of(name) if name else None
    if row is None and workload.node is not None:
        row = tables.chip_by_capability(workload.node.compute_capability.value)
    return row


def gpu_memory_bytes(workload: WorkloadSnapshot) -> tuple[int | None, str]:
    """One GPU's memory, from nvidia-smi, the node's label, or the product's name."""
    smi = inside_text(workload, "smi")
    if smi:
        fields = [field.strip() for field in smi.splitlines()[0].split(",")]
        if len(fields) > 2 and fields[2].isdigit():
            return int(fields[2]) * 2**20, "nvidia-smi in the container"
    if workload.node is not None and workload.node.gpu_memory_bytes.value is not None:
        return workload.node.gpu_memory_bytes.value, workload.node.gpu_memory_bytes.source
    name, _ = product(workload)
    match = re.search(r"(\d{2,3})[-_ ]?GB", name or "", re.IGNORECASE)
    if match:
        return int(match[1]) * 10**9, f"the product's name {name}"
    return None, "the GPU's memory is not known"


def namespace_level(workload: WorkloadSnapshot) -> tuple[str | None, str]:
    """The Pod Security level that the namespace enforces: ``privileged`` where no label says
    otherwise; ``None`` where the namespace could not be read."""
    fact = workload.related.get("namespaces")
    if fact is None or fact.value is None:
        missing = None if fact is None else fact.missing
        return None, missing or "get namespaces"
    labels = (fact.value[0].get("metadata") or {}).get("labels") or {} if fact.value else {}
    label = "pod-security.kubernetes.io/enforce"
    if label in labels:
        return str(labels[label]), f"namespace label {label}"
    return "privileged", "the namespace has no Pod Security label"


def counters_restricted(workload: WorkloadSnapshot) -> bool | None:
    """Whether the driver keeps counters for administrators; ``None``: not known."""
    params = inside_text(workload, "params")
    match = re.search(r"RmProfilingAdminOnly:\s*(\d)", params or "")
    return None if match is None else match[1] == "1"


def has_sys_admin(workload: WorkloadSnapshot) -> bool:
    """Whether the server's container holds CAP_SYS_ADMIN already."""
    status = inside_text(workload, "status")
    match = re.search(r"CapEff:\s*([0-9a-fA-F]+)", status or "")
    if match:
        return bool(int(match[1], 16) & (1 << 21))  # CAP_SYS_ADMIN is bit 21
    server = workload.server
    if server is None:
        return False
    return bool(server.security.privileged) or "SYS_ADMIN" in server.security.capabilities_added


def found(
    code: str, severity: Severity, where: str, fact: str, remedy: str, *evidence: str
) -> Finding:
    """A finding in one line."""
    return Finding(
        code=code, severity=severity, where=where, fact=fact, remedy=remedy, evidence=evidence
    )


def container_name(workload: WorkloadSnapshot) -> str:
    """Where findings about the server's container are."""
    return f"container {workload.container}" if workload.container else workload.reference


def release(text: str | None) -> tuple[int, ...] | None:
    """A dotted version as numbers; ``None`` where it has none."""
    match = re.search(r"\d+(?:\.\d+)+", text or "")
    return tuple(int(part) for part in match[0].split(".")) if match else None


def whole(value: object) -> int | None:
    """A count as Kubernetes writes one (number or text); ``None`` for anything else."""
    try:
        return int(str(value))
    except ValueError:
        return None
