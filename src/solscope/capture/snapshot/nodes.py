"""Node labels to GpuNode, and what a pod's own node selection says where no node can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from solscope.cluster.quantity import quantity
from solscope.model.cluster import Fact, GpuNode

T = TypeVar("T")
_PREFIX = "nvidia.com/"
_MIB = 2**20


def from_object(node: Mapping[str, Any]) -> GpuNode:
    """A node as the API server has it, by the labels of GPU feature discovery."""
    metadata = node.get("metadata") or {}
    labels = {str(k): str(v) for k, v in (metadata.get("labels") or {}).items()}
    name = str(metadata.get("name") or "")
    status = node.get("status") or {}
    capacity = status.get("capacity") or {}
    info = status.get("nodeInfo") or {}
    memory = quantity(capacity.get("memory"))
    architecture = labels.get("kubernetes.io/arch") or info.get("architecture")
    facts = _from_labels(labels, f"node {name}")
    if facts["gpu_count"].value is None and capacity.get("nvidia.com/gpu"):
        count = round(quantity(capacity["nvidia.com/gpu"]) or 0)
        facts["gpu_count"] = Fact(value=count, source=f"node {name}, capacity")
    return GpuNode(
        name=name,
        labels=labels,
        memory_bytes=_fact(None if memory is None else round(memory), f"node {name}, capacity"),
        architecture=_fact(architecture, f"node {name}"),
        **facts,
    )


def unreadable(name: str, right: str) -> GpuNode:
    """A node whose name is known and nothing else."""
    fact: Fact[Any] = Fact(missing=right)
    return GpuNode(
        name=name,
        product=fact,
        compute_capability=fact,
        gpu_memory_bytes=fact,
        gpu_count=fact,
        driver=fact,
        cuda_supported=fact,
        sharing=fact,
        replicas=fact,
        mig_strategy=fact,
        vgpu=fact,
        memory_bytes=fact,
        architecture=fact,
    )


def selected(selector: Mapping[str, str], missing: str) -> GpuNode | None:
    """The node that a selector asks for; ``None`` where it says nothing of GPUs."""
    known = {k: v for k, v in selector.items() if k.startswith(_PREFIX) or "accelerator" in k}
    if not known:
        return None
    source = "the pod's node selection"
    blank: dict[str, Fact[Any]] = {"memory_bytes": Fact(missing=missing)}
    for field, fact in _from_labels(known, source, missing=missing).items():
        blank[field] = fact
    return GpuNode(
        name="<any that the pod selects>",
        labels=known,
        architecture=Fact(value=selector.get("kubernetes.io/arch"), source=source),
        **blank,
    )


def _from_labels(
    labels: Mapping[str, str], source: str, *, missing: str | None = None
) -> dict[str, Fact[Any]]:
    label = _Labels(labels, source, missing or "no such label: GPU feature discovery is not there")
    return {
        "product": label.first(
            ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator",
             "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name",
             "gpu.nvidia.com/class"), str),
        "compute_capability": label.joined(
            ("nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor")),
        "gpu_memory_bytes": label.first(("nvidia.com/gpu.memory",), lambda v: int(v) * _MIB),
        "gpu_count": label.first(("nvidia.com/gpu.count",), int),
        "driver": label.first(("nvidia.com/cuda.driver-version.full",), str)
        if "nvidia.com/cuda.driver-version.full" in labels
        else label.joined(tuple(f"nvidia.com/cuda.driver.{p}" for p in ("major", "minor", "rev"))),
        "cuda_supported": label.first(("nvidia.com/cuda.runtime-version.full",), str)
        if "nvidia.com/cuda.runtime-version.full" in labels
        else label.joined(tuple(f"nvidia.com/cuda.runtime.{p}" for p in ("major", "minor"))),
        "sharing": label.first(
            ("nvidia.com/gpu.sharing-strategy", "cloud.google.com/gke-gpu-sharing-strategy"), str),
        "replicas": label.first(
            ("nvidia.com/gpu.replicas", "cloud.google.com/gke-max-shared-clients-per-gpu"), int),
        "mig_strategy": label.first(
            ("nvidia.com/mig.strategy", "cloud.google.com/gke-gpu-partition-size"), str),
        "vgpu": label.first(
            ("nvidia.com/vgpu.present", "nvidia.com/vgpu.host-driver-version"), str),
    }  # fmt: skip


class _Labels:
    def __init__(self, labels: Mapping[str, str], source: str, missing: str) -> None:
        self._labels, self._source, self._missing = labels, source, missing

    def first(self, names: Sequence[str], convert: Callable[[str], T]) -> Fact[T]:
        for name in names:
            value = self._labels.get(name)
            if value is None:
                continue
            try:
                return Fact(value=convert(value), source=f"{self._source}, label {name}")
            except ValueError:
                return Fact(missing=f"label {name} is not a number: {value!r}")
        return Fact(missing=self._missing)

    def joined(self, names: Sequence[str]) -> Fact[str]:
        parts = [self._labels[name] for name in names if self._labels.get(name)]
        if not parts or names[0] not in self._labels:
            return Fact(missing=self._missing)
        return Fact(value=".".join(parts), source=f"{self._source}, label {names[0]} ...")


def _fact(value: T | None, source: str) -> Fact[T]:
    return Fact(value=value, source=source) if value is not None else Fact(missing=source)
