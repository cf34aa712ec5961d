"""A capture being run: what it was asked for, its steps, what it brought home."""

from __future__ import annotations

from dataclasses import dataclass, field

from solscope.model.cluster import KubernetesObject
from solscope.model.evidence import Artifact
from solscope.model.finding import Finding

SCHEMA = "solscope.capture/1"
SETTINGS_SCHEMA = "solscope.capture-settings/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The requests that warm the server up and that are profiled. Lengths in tokens."""

    isl: int = 1024
    osl: int = 128
    concurrency: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long each wait may take, in seconds; after it the capture ends and is diagnosed."""

    schedule_s: float = 600.0
    ready_s: float = 1800.0
    warm_up_s: float = 600.0
    window_s: float = 900.0
    finish_s: float = 300.0
    cleanup_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """All that a run needs to go on after a crash, beside the plan, the sister and receipts.

    ``workload`` is the target as ``Kind/name``; ``sister`` the owning object's name and
    ``sister_kind`` its kind. ``port`` is the server's inside its pod. ``run`` marks what this very
    run made; ``ncu`` is where it lies in the server's container.
    """

    schema: str = SETTINGS_SCHEMA
    experiment: str
    run: str
    context: str | None
    namespace: str
    workload: str
    sister: str
    sister_kind: str
    container: str
    port: int
    health: str
    ncu: str
    output: str
    traffic: Traffic
    limits: Limits
    perfbench: str | None = None
    seal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step of a dry run: its name, what it does, and the command that shows it exactly."""

    name: str
    what: str
    command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """One production pod. ``restarts`` sums those of its containers."""

    name: str
    uid: str
    ready: bool
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadState:
    """What must be the same after a capture as before it. ``None``: no such field.

    ``refused`` is why the cluster takes no further pod of it, such as a quota; ``None``: it does.
    ``uid`` is the workload's: in another cluster one of the same name has another.
    """

    workload: str
    generation: int | None
    replicas: int | None
    ready_replicas: int | None
    refused: str | None = None
    uid: str | None = None
    pods: tuple[PodState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedFile:
    """One file fetched from the sister: its name there, its place here, its digest."""

    name: str
    artifact: Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureResult:
    """A capture, run or only shown.

    ``steps`` are those that a dry run would take; ``done`` those that were taken, in order.
    ``leftovers`` are objects that still carry the experiment's label: must be empty.
    """

    schema: str = SCHEMA
    experiment: str
    target: str
    namespace: str
    is_dry_run: bool
    context: str | None = None
    bundle: str | None = None
    objects: tuple[KubernetesObject, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    done: tuple[str, ...] = ()
    files: tuple[CollectedFile, ...] = ()
    kernels: int | None = None
    before: WorkloadState | None = None
    after: WorkloadState | None = None
    leftovers: tuple[str, ...] = ()
    is_sealed: bool = False
    findings: tuple[Finding, ...] = field(default=())
