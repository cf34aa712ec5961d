"""A workload as Kubernetes and its containers tell it: what is known, from where, and what is not.

Every decided value is a :class:`Fact`; one that could not be read names the right, or the step,
that would give it. Sizes in bytes, times in seconds. Raw objects stay reachable, keys as
Kubernetes writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")

KubernetesObject = Mapping[str, Any]
"""One Kubernetes object as its JSON says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Generic[T]):
    """A value and where it is from, or ``None`` and what is missing to know it.

    ``source`` names an object and its field, a command, or a table; ``missing`` the right or
    the step that would answer, and is ``None`` where the value is known or simply not set.
    """

    value: T | None = None
    source: str = ""
    missing: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def is_unknown(self) -> bool:
        """Whether something was in the way of reading it (unset is not unknown)."""
        return self.value is None and self.missing is not None


class ProbeKind(StrEnum):
    """The three probes of a container."""

    STARTUP = "startup"
    LIVENESS = "liveness"
    READINESS = "readiness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe with Kubernetes' defaults filled in. Times in seconds."""

    kind: ProbeKind
    handler: str
    period_s: int = 10
    failure_threshold: int = 3
    timeout_s: int = 1
    initial_delay_s: int = 0

    @property
    def budget_s(self) -> int:
        """How long silence lasts, about, until the probe has failed for good."""
        return self.period_s * self.failure_threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVar:
    """One variable. ``value`` is ``None`` where it comes from elsewhere (``origin`` says where)
    or where it is, or may be, a secret (``is_secret``): secrets are never kept.
    """

    name: str
    value: str | None = None
    origin: str | None = None
    is_secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSecurity:
    """The effective security context: the container's own over its pod's. ``None``: not set."""

    privileged: bool | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    read_only_root: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities_added: tuple[str, ...] = ()
    capabilities_dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSnapshot:
    """One container of a pod.

    ``gpus`` counts devices asked for by ``gpu_resource`` (``nvidia.com/gpu``,
    ``nvidia.com/mig-1g.10gb``, ``amd.com/gpu`` ...). ``is_sidecar`` marks an init container
    that keeps running. ``command``, ``args`` and ``raw`` are as they stand, secrets included:
    never print them.
    """

    name: str
    image: str
    command: tuple[str, ...] = field(default=(), repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[str, ...] = ()
    gpus: int = 0
    gpu_resource: str | None = None
    memory_limit_bytes: int | None = None
    ephemeral_storage_limit_bytes: int | None = None
    probes: tuple[Probe, ...] = ()
    security: ContainerSecurity = ContainerSecurity()
    mounts: Mapping[str, str] = field(default_factory=dict)  # mount path -> volume
    lifecycle: tuple[str, ...] = ()
    is_init: bool = False
    is_sidecar: bool = False
    raw: KubernetesObject = field(default_factory=dict, repr=False)

    def env_value(self, name: str) -> str | None:
        """A variable's plain value, ``None`` where it is unset, referred to, or secret."""
        return next((var.value for var in self.env if var.name == name), None)

    def probe(self, kind: ProbeKind) -> Probe | None:
        """The probe of that kind."""
        return next((probe for probe in self.probes if probe.kind is kind), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSnapshot:
    """A pod, or the template that pods are made from. ``raw`` holds its metadata and spec."""

    name: str | None
    containers: tuple[ContainerSnapshot, ...]
    init_containers: tuple[ContainerSnapshot, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    # kubectl's last-applied annotation repeats the whole object, secrets included.
    annotations: Mapping[str, str] = field(default_factory=dict, repr=False)
    node: str | None = None
    phase: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    runtime_class: str | None = None
    priority_class: str | None = None
    priority: int | None = None
    service_account: str | None = None
    service_links: bool = True
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    share_process_namespace: bool = False
    resource_claims: tuple[str, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)  # name -> kind
    restarts: int | None = None
    is_ready: bool | None = None
    raw: KubernetesObject = field(default_factory=dict, repr=False)

    def container(self, name: str) -> ContainerSnapshot | None:
        """The container of that name, init containers last."""
        return next((c for c in (*self.containers, *self.init_containers) if c.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """The node that a pod runs on, or would run on, as far as it could be read.

    ``cuda_supported`` is the newest CUDA that the *driver* supports, never the image's.
    ``gpu_memory_bytes`` is one GPU's.
    """

    name: str
    product: Fact[str] = Fact()
    compute_capability: Fact[str] = Fact()
    gpu_memory_bytes: Fact[int] = Fact()
    gpu_count: Fact[int] = Fact()
    driver: Fact[str] = Fact()
    cuda_supported: Fact[str] = Fact()
    sharing: Fact[str] = Fact()  # none, time-slicing, mps
    replicas: Fact[int] = Fact()
    mig_strategy: Fact[str] = Fact()
    vgpu: Fact[str] = Fact()
    memory_bytes: Fact[int] = Fact()
    architecture: Fact[str] = Fact()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArgument:
    """One argument of the server: its full name without dashes, its value (``None`` for a
    switch; secrets masked), and the name as it was written."""

    name: str
    value: str | None
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArgs:
    """What the inference server was started with.

    ``None`` means that the command line does not say: engine defaults are never filled in here,
    except in ``memory_fraction``, whose source says so. ``argv`` is the server's own command
    after shell and variables (secrets masked); ``form`` says how it was found (``list``,
    ``shell``, ``entrypoint``, ``process``).
    ``unresolved`` lists variables and templates whose value is not known.
    """

    engine: str | None
    form: str
    argv: tuple[str, ...] = ()
    source: str = ""
    version: Fact[str] = Fact()
    cuda: Fact[str] = Fact()
    model: str | None = None
    served_names: tuple[str, ...] = ()
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    expert_parallel: int | None = None
    nodes: int | None = None
    executor: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    memory_fraction: Fact[float] = Fact()
    kv_cache_memory_bytes: int | None = None
    is_eager: bool | None = None
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    speculative: str | None = None
    profiler: str | None = None  # torch, cuda, ... : what /start_profile starts
    nvtx: bool | None = None
    kv_transfer: str | None = None
    port: int | None = None
    config_file: str | None = None
    worker_start: str | None = None  # fork, spawn
    arguments: tuple[EngineArgument, ...] = ()
    unresolved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gpus_per_replica(self) -> int | None:
        """Tensor x pipeline parallel ranks, ``None`` where neither is stated."""
        if self.tensor_parallel is None and self.pipeline_parallel is None:
            return None
        return (self.tensor_parallel or 1) * (self.pipeline_parallel or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSnapshot:
    """A process in the container; ``name`` is its title where an engine gave it one."""

    pid: int
    parent: int | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InsideSnapshot:
    """What the container itself told, asked by exec.

    ``texts`` holds each answer under the name of what was asked (``cmdline``, ``params``,
    ``smi`` ...), secrets masked except in ``cmdline``, which is read word by word; ``unread``
    why others are missing.
    """

    container: str
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: tuple[EnvVar, ...] = ()
    processes: tuple[ProcessSnapshot, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """One answer, ``None`` where it is missing or empty."""
        return self.texts.get(name) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSnapshot:
    """The target: who it is, its pod template, its live pods, its surroundings.

    ``target`` is the object that the user named, ``owners`` what stands above it
    (``Kind/name``, nearest first). ``template`` is the pod template as the snapshot reads it,
    ``template_raw`` the same as Kubernetes holds it (metadata, spec). ``gpu_containers`` are the
    names of all containers that ask for accelerators; ``container`` the one to profile, ``None``
    where the user must say which.
    ``related`` maps a plural kind (``services``, ``horizontalpodautoscalers`` ...) to the
    objects of the namespace, or to the right that is missing.
    """

    kind: str
    name: str
    namespace: str | None
    context: str | None
    source: str
    taken_at: str
    replicas: int | None
    template: PodSnapshot
    template_raw: KubernetesObject = field(repr=False)
    raw: KubernetesObject = field(repr=False)
    container: str | None
    gpu_containers: tuple[str, ...] = ()
    pods: tuple[PodSnapshot, ...] = ()
    owners: tuple[str, ...] = ()
    nodes: tuple[GpuNode, ...] = ()
    engine: EngineArgs | None = None
    inside: InsideSnapshot | None = None
    related: Mapping[str, Fact[tuple[KubernetesObject, ...]]] = field(
        default_factory=dict, repr=False
    )
    notes: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        """``Kind/name``, with the namespace where it is known."""
        where = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.kind}/{self.name}{where}"

    @property
    def server(self) -> ContainerSnapshot | None:
        """The container to profile, as the template has it."""
        return None if self.container is None else self.template.container(self.container)

    @property
    def node(self) -> GpuNode | None:
        """The node to judge by: the first that a pod runs on."""
        return self.nodes[0] if self.nodes else None

    def seen(self, kind: str) -> tuple[KubernetesObject, ...]:
        """The related objects of a kind that could be read; none where they could not."""
        fact = self.related.get(kind)
        return () if fact is None or fact.value is None else fact.value
