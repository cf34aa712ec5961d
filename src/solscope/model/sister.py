"""The isolated copy of a workload that will be profiled, and the proof that nothing reaches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding

SCHEMA = "solscope.sister/1"


class SisterKind(StrEnum):
    """The object that owns the sister's pod."""

    JOB = "Job"
    """Ends by itself: deadline, no retry, removed after its time to live."""
    DEPLOYMENT = "Deployment"
    """Stays until somebody deletes it; restarted when the server ends."""


class ToolsSource(StrEnum):
    """How ncu gets into the server's container."""

    INIT_CONTAINER = "init-container"
    """Copied from the tools image into an ``emptyDir``. Works on every cluster."""
    IMAGE_VOLUME = "image-volume"
    """The tools image mounted read-only: on by default since Kubernetes 1.35."""
    IN_IMAGE = "in-image"
    """The server's own image has it."""


class Action(StrEnum):
    """What happened to one field between target and sister."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between the target's pod and the sister's.

    ``path`` is relative to the pod template; list entries are named, not numbered
    (``spec.containers[vllm].livenessProbe``). ``what`` never holds a secret.
    """

    path: str
    action: Action
    what: str
    why: str


class Effect(StrEnum):
    """What one rule of the namespace means for the sister."""

    CLEAR = "clear"
    """It does not match the sister."""
    REFUSES = "refuses"
    """It matches: the sister would get traffic, be counted, scaled or adopted."""
    ACCEPTED = "accepted"
    """It matches, and the user said by name that it may."""
    APPLIES = "applies"
    """It covers every pod of the namespace and sends nothing: it restricts the sister too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One rule that could have reached the sister, and whether it does.

    ``channel`` is what the rule would bring (traffic, metrics, scaling, adoption ...), ``rule``
    its selector in Kubernetes' own notation, ``path`` where it stands in the object.
    """

    kind: str
    name: str
    path: str
    rule: str
    channel: str
    matches_target: bool
    matches_sister: bool
    effect: Effect
    note: str | None = None

    @property
    def stops_matching(self) -> bool:
        """Whether the target has something by this rule that the sister loses."""
        return self.matches_target and not self.matches_sister


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationProof:
    """Every rule seen, matched against the labels that the sister's pod will carry.

    ``labels`` includes those that Kubernetes adds itself; their unknown values are ``*``.
    ``unread`` names what could not be looked at, with the missing right; ``accepted`` what the
    user allows to match, as ``kind/name``.
    """

    labels: Mapping[str, str]
    evidence: tuple[Evidence, ...]
    unread: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()

    @property
    def matches(self) -> tuple[Evidence, ...]:
        """The rules that forbid the sister."""
        return tuple(item for item in self.evidence if item.effect is Effect.REFUSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SisterTarget:
    """The workload to copy: who it is and its pod template as Kubernetes holds it.

    ``template`` is a pod template (``metadata``, ``spec``); for a bare pod, the pod itself.
    ``owner`` is ``Kind/name`` of a controller above the workload. ``node`` is where one of its
    pods runs, when known.
    """

    kind: str
    name: str
    namespace: str | None
    template: KubernetesObject
    container: str
    owner: str | None = None
    node: str | None = None

    @property
    def reference(self) -> str:
        """``Kind/name``, with the namespace when it is known."""
        where = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.kind}/{self.name}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SisterOptions:
    """The choices that a plan does not make. Times in seconds, sizes in bytes.

    ``server_command`` is the server's whole command line where Kubernetes does not hold it.
    ``deadline_s`` ``None`` means one that fits the plan.
    ``hold_s`` is how long results stay reachable after the server has ended by itself.
    ``without`` names containers and init containers of the target that it does not get.
    """

    kind: SisterKind = SisterKind.JOB
    experiment: str | None = None
    tools_image: str | None = None
    tools: ToolsSource = ToolsSource.INIT_CONTAINER
    ncu: str | None = None
    server_command: tuple[str, ...] = ()
    labels: Mapping[str, str] | None = None
    accept: tuple[str, ...] = ()
    deadline_s: int | None = None
    time_to_live_s: int = 3600
    hold_s: int = 300
    sys_admin: bool = False
    read_only_claims: bool = False
    without: tuple[str, ...] = ()
    harness: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedObject:
    """One object of a sister as the cluster knows it; the uid tells it from a later namesake."""

    kind: str
    name: str
    uid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sister:
    """The objects to create, how they differ from the target, and the proof of isolation.

    Refused when a finding blocks: then ``objects`` is empty and nothing may be created.
    ``attach_command`` is for the second ncu, where the strategy needs one. ``rehearsed`` says
    that the cluster was asked and would take it, ``admitted`` what its admission would make of the
    pod, ``created`` what it has taken. ``engine`` is the
    serving engine that the command starts, ``None`` where that is not known.
    """

    schema: str = SCHEMA
    name: str
    experiment: str
    target: str
    namespace: str | None
    strategy: str
    container: str
    objects: tuple[KubernetesObject, ...]
    changes: tuple[Change, ...]
    proof: IsolationProof | None
    findings: tuple[Finding, ...]
    engine: str | None = None
    attach_command: tuple[str, ...] = ()
    rehearsed: bool = False
    admitted: tuple[Change, ...] = ()
    created: tuple[CreatedObject, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether a finding forbids the sister."""
        return any(finding.blocks for finding in self.findings)
