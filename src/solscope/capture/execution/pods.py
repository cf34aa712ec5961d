"""The sister's pod: found, waited for, and what keeps it from running, in words."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from solscope.cluster.port import Cluster, NotFound
from solscope.errors import CaptureError, ClusterError

Object = Mapping[str, Any]
MARK = "solscope-sister"
"""The label that tells a sister's objects from those of others with the same experiment."""
POLL_S = 0.5
PULL_PATIENCE_S = 300.0
"""Five tries of the node: it doubles the pause from 10 s on. The copy holds its GPU meanwhile."""
_NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
# What a registry or the way to it says that may be over at the node's next try.
_PASSING = re.compile(
    r"time-?out|timed out|deadline exceeded|toomanyrequests|too many requests|"
    r"\b(?:429|500|502|503|504)\b|service unavailable|bad gateway|internal server error|"
    r"connection (?:refused|reset)|\bEOF\b|request canceled|server misbehaving|"
    r"temporary failure|no route to host|network is unreachable",
    re.IGNORECASE,
)
_ONLY_BACKS_OFF = re.compile(r'Back-off pulling image "[^"]*"\.?\Z')
"""Nodes before Kubernetes 1.32 do not say why while they wait for the next try."""
_BROKEN = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a pod does not run. ``patience_s`` is how long that may last: 0 where no wait helps."""

    what: str
    hint: str
    patience_s: float = 0.0


def find(cluster: Cluster, experiment: str) -> Object | None:
    """The sister's newest pod that is not being deleted, if there is one.

    The experiment's label alone may stand on pods of others, too.
    """
    found = [
        pod
        for pod in cluster.list("pods", labels=f"experiment={experiment}")
        if MARK in (pod["metadata"].get("labels") or {})
        and not pod["metadata"].get("deletionTimestamp")
    ]
    return max(found, key=_age, default=None)


def _age(pod: Object) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def require(cluster: Cluster, experiment: str, owner: tuple[str, str]) -> Object:
    """The sister's pod, made by ``owner`` (kind, name). Raises CaptureError where it is gone."""
    pod = find(cluster, experiment)
    if pod is None:
        late = _deadline(cluster, owner)
        if late is not None:
            raise CaptureError(late.what, where="/".join(owner), hint=late.hint)
        raise CaptureError(
            "the sister's pod is gone",
            where=f"experiment={experiment}",
            hint="somebody deleted it, or its node was drained; capture again",
        )
    return pod


def _deadline(cluster: Cluster, owner: tuple[str, str]) -> Trouble | None:
    """A Job that has passed its deadline deletes its pods, and only it knows why they are gone."""
    try:
        status = cluster.get(*owner).get("status") or {}
    except ClusterError:
        return None
    for condition in status.get("conditions") or ():
        if condition.get("reason") == "DeadlineExceeded" and condition.get("status") == "True":
            return Trouble(
                what="the cluster ended the copy: its deadline has passed",
                hint="give a longer --deadline, or shorter limits for the waits before",
            )
    return None


def wait_running(
    cluster: Cluster,
    experiment: str,
    owner: tuple[str, str],
    container: str,
    limit_s: float,
    tick: Callable[[str], None],
    admit: Callable[[Object], None],
) -> Object:
    """The pod once its server's container runs.

    ``owner`` is kind and name of what creates it. ``admit`` looks at each pod as soon as it is
    there, before it can serve, and raises CaptureError where it must not stay. Raises
    CaptureError as soon as it cannot run, with the cluster's own words, or when ``limit_s`` has
    passed.
    """
    well_at = time.monotonic()
    ends = well_at + limit_s
    trouble: Trouble | None = None
    looked_at: set[str] = set()
    while True:
        pod = find(cluster, experiment)
        if pod is not None and (uid := str(pod["metadata"].get("uid"))) not in looked_at:
            looked_at.add(uid)
            admit(pod)
        if pod is not None and state_of(pod, container).get("running"):
            return pod
        trouble = _trouble(cluster, owner, pod)
        if trouble is None or math.isinf(trouble.patience_s):
            well_at = time.monotonic()
        elif time.monotonic() - well_at >= trouble.patience_s:
            raise CaptureError(trouble.what, where="/".join(owner), hint=trouble.hint)
        if time.monotonic() >= ends:
            break
        tick(f"start: {trouble.what if trouble else 'its containers do not run yet'}")
        time.sleep(POLL_S)
    said = trouble or _warned(cluster, pod)
    raise CaptureError(
        f"not running within {limit_s:g} s: {said.what}", where="/".join(owner), hint=said.hint
    )


def _warned(cluster: Cluster, pod: Object | None) -> Trouble:
    """Why a pod hangs that has a node: volumes and networks are told of in events only."""
    warnings = [
        event
        for event in (_events(cluster, str(pod["metadata"]["name"])) if pod else ())
        if event.get("type") == "Warning"
    ]
    if not warnings:
        return Trouble(what="its containers did not start", hint="look at its events")
    last = max(warnings, key=lambda event: str(event.get("lastTimestamp") or ""))
    return Trouble(
        what=f"its containers did not start: {last.get('reason')}: {last.get('message')}",
        hint="see that the volume, Secret or network that this names is there for the copy, too",
    )


def state_of(pod: Object, container: str) -> Mapping[str, Any]:
    """The state of a container, as its status has it; empty where there is none."""
    status = pod.get("status") or {}
    every = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    state = next((c.get("state") for c in every if c.get("name") == container), None)
    return state or {}


def _trouble(cluster: Cluster, owner: tuple[str, str], pod: Object | None) -> Trouble | None:
    if pod is None:
        return _no_pod(cluster, owner)
    return of_pod(pod)


def _no_pod(cluster: Cluster, owner: tuple[str, str]) -> Trouble | None:
    """Why an owner makes no pod: quota and Pod Security are told in events only."""
    for event in _events(cluster, owner[1]):
        if event.get("reason") == "FailedCreate":
            return Trouble(
                what=f"its pod was refused: {event.get('message')}",
                hint="change what that text names, or ask the namespace's owner",
            )
    try:
        status = cluster.get(*owner).get("status") or {}
    except NotFound:
        return Trouble(what="it was deleted", hint="somebody removed it; capture again")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Suspended" and condition.get("status") == "True":
            return Trouble(
                what="a queue holds it back: the Job is suspended",
                hint="wait for the queue with a longer --pending-limit, or ask its owner",
                patience_s=math.inf,
            )
        if condition.get("type") in ("Failed", "ReplicaFailure") and (
            condition.get("status") == "True"
        ):
            return Trouble(
                what=f"{condition.get('reason')}: {condition.get('message')}",
                hint="change what that text names, or ask the namespace's owner",
            )
    return None


def _events(cluster: Cluster, name: str) -> Iterator[Object]:
    try:
        yield from cluster.list("events", fields=f"involvedObject.name={name}")
    except ClusterError:
        return  # without the right to read events there is less to say


def of_pod(pod: Object) -> Trouble | None:
    """What keeps a pod from running; ``None`` where it only needs time."""
    status = pod.get("status") or {}
    if status.get("phase") == "Failed" and status.get("reason"):
        return Trouble(
            what=f"the pod failed: {status['reason']}: {status.get('message') or ''}".rstrip(": "),
            hint="Evicted: give the sister more room; DeadlineExceeded: give a longer --deadline",
        )
    for entry in (
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ):
        found = _of_container(entry)
        if found is not None:
            return found
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Trouble(
                what=f"no node takes it: {condition.get('message')}",
                hint="wait for a free GPU, or give a longer --pending-limit",
                patience_s=math.inf,
            )
    return None


def _of_container(entry: Object) -> Trouble | None:
    name, state = entry.get("name"), entry.get("state") or {}
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    reason = waiting.get("reason")
    if reason in _NO_IMAGE:
        said = str(waiting.get("message") or "")
        backs_off = reason == "ImagePullBackOff" and (not said or _ONLY_BACKS_OFF.match(said))
        return Trouble(
            what=f"container {name}: {reason}: {said or 'no message'}",
            hint="name an image that the node can pull with --tools-image, or add a pull secret",
            patience_s=PULL_PATIENCE_S if backs_off or _PASSING.search(said) else 0.0,
        )
    if reason in _BROKEN:
        return Trouble(
            what=f"container {name}: {reason}: {waiting.get('message') or 'no message'}",
            hint="see what it wrote: the bundle holds its log",
        )
    code = ended.get("exitCode")
    if ended and code != 0:
        why = ended.get("reason") or "Error"
        return Trouble(
            what=f"container {name} ended with exit code {code} ({why})",
            hint="OOMKilled: raise its memory; else see its log in the bundle",
        )
    return None


def log(
    cluster: Cluster,
    namespace: str,
    pod: str,
    container: str,
    *,
    since: str | None = None,
    stamped: bool = False,
) -> str:
    """A container's log so far, or from the second ``since`` on; empty where it has none.

    ``stamped`` puts each line's time before it. Raises ClusterError.
    """
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}"
    path += "&timestamps=true" if stamped else ""
    path += f"&sinceTime={since}" if since else ""
    return cluster.raw(path).decode("utf-8", "replace")
