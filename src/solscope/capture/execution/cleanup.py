"""Everything that carries the experiment's label, deleted by name and uid, and proven gone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from solscope.capture.execution import scripts
from solscope.capture.execution.pods import MARK
from solscope.capture.execution.server import SIDECAR
from solscope.cluster.port import Cluster, Conflict, Forbidden, NotFound, Unreachable
from solscope.errors import CaptureError, ClusterError

OWNERS = ("jobs", "deployments", "configmaps")
KINDS = (*OWNERS, "replicasets", "pods")
POLL_S = 0.5
_GRACE_S = 15
"""For the server's own hook, which ends it at once and frees the GPU's clocks."""
_NEEDED = ("jobs", "pods")
Object = Mapping[str, Any]


def listed(cluster: Cluster, experiment: str) -> tuple[Object, ...]:
    """All objects of an experiment that this tool made. Raises ClusterError."""
    return look(cluster, experiment).objects


@dataclass(frozen=True, slots=True)
class Look:
    """What was found of an experiment, in which kinds, and which ones the user may not list."""

    objects: tuple[Object, ...]
    kinds: tuple[str, ...]
    unseen: tuple[str, ...]


def look(cluster: Cluster, experiment: str) -> Look:
    """List every kind that a sister may consist of. Raises ClusterError.

    A capture makes a Job and its pod: who may not list these is told so. The other kinds stand
    for ``solscope sister``, and are named where they could not be looked at.
    """
    objects: list[Object] = []
    kinds: list[str] = []
    unseen: list[str] = []
    for kind in KINDS:
        try:
            found = cluster.list(kind, labels=f"experiment={experiment}")
        except NotFound:
            continue
        except Forbidden:
            if kind in _NEEDED:
                raise
            unseen.append(kind)
            continue
        kinds.append(kind)
        objects += [
            {"kind": kind, **item}
            for item in found
            if MARK in (item["metadata"].get("labels") or {})
        ]
    return Look(tuple(objects), tuple(kinds), tuple(unseen))


def reference(item: Object) -> str:
    """``Kind/name``."""
    return f"{item.get('kind')}/{item['metadata']['name']}"


def remove(cluster: Cluster, experiment: str, limit_s: float) -> Mapping[str, Any]:
    """Delete all objects of an experiment, wait for the last, list again.

    Raises CaptureError where something is left after ``limit_s``, naming it.
    """
    ends = time.monotonic() + limit_s
    removed: dict[str, str] = {}
    rounds = 0
    left: tuple[Object, ...] = ()
    while True:
        try:
            seen = look(cluster, experiment)
            left = seen.objects
            if not left:
                return {
                    "listed": f"{', '.join(seen.kinds)} with experiment={experiment}",
                    "not_listed": list(seen.unseen),
                    "removed": removed,
                    "left": [],
                }
            if rounds % 10 == 0:
                for item in left:
                    removed[reference(item)] = str(item["metadata"].get("uid"))
                    _remove(cluster, item)
            rounds += 1
        except Unreachable:
            if time.monotonic() >= ends:
                raise
        if time.monotonic() >= ends:
            raise CaptureError(
                f"still there after {limit_s:g} s: {', '.join(reference(i) for i in left)}",
                where=f"namespace {cluster.namespace}",
                hint=f"solscope capture --cleanup {experiment} -n {cluster.namespace} --yes",
            )
        time.sleep(POLL_S)


def _remove(cluster: Cluster, item: Object) -> None:
    metadata, kind = item["metadata"], str(item["kind"])
    is_pod = kind.lower() in ("pod", "pods")
    if is_pod:
        _release(cluster, item)
    try:
        cluster.delete(
            kind,
            str(metadata["name"]),
            uid=metadata.get("uid"),
            grace_s=_GRACE_S if is_pod else None,
        )
    except (Conflict, NotFound):
        return  # another object of that name by now, or gone


def _release(cluster: Cluster, pod: Object) -> None:
    """Tell the sidecar that nobody waits for results any more, so that it ends at once."""
    with contextlib.suppress(ClusterError):
        cluster.exec(
            str(pod["metadata"]["name"]), SIDECAR, ("touch", scripts.COLLECTED), timeout_s=10
        )
