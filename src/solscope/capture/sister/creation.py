"""A sister's objects into the cluster: rehearsed first, whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solscope.capture.sister import owners, refusal
from solscope.cluster.port import Cluster, Conflict, Refused
from solscope.errors import ClusterError
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding
from solscope.model.sister import CreatedObject, Sister


def rehearse(cluster: Cluster, sister: Sister) -> Sister:
    """Ask the server, without creating, whether it would take the sister.

    The bare pod is asked about first: quota and Pod Security refuse pods, and a Job that holds
    a refused pod looks accepted. A refusal becomes a finding with the server's own words.
    """
    findings: list[Finding] = []
    for item in (owners.pod_of(sister), *sister.objects):
        try:
            cluster.create(item, dry_run=True)
        except (Refused, Conflict) as error:
            findings.append(_refused(item, error))
    if not findings:
        return replace(sister, rehearsed=True)
    return replace(sister, objects=(), findings=(*sister.findings, *findings))


def _refused(item: KubernetesObject, error: ClusterError) -> Finding:
    where = f"{item['kind']}/{item['metadata']['name']}"
    exists = isinstance(error, Conflict)
    return refusal.block(
        "sister-exists" if exists else "sister-not-admitted",
        where,
        f"the cluster would refuse it: {error.what}",
        "remove the earlier one, or give another --experiment"
        if exists
        else "change what that text names, or ask the namespace's owner",
        error.what,
    )


def create(cluster: Cluster, sister: Sister) -> Sister:
    """Create every object; if one fails, or Ctrl-C comes, delete those before it and raise."""
    made: list[CreatedObject] = []
    try:
        for item in sister.objects:
            made.append(_created(cluster.create(item)))
    except (ClusterError, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and len(made) < len(sister.objects):
            # It may have come through; the rehearsal has shown that nobody else's has its name.
            last = sister.objects[len(made)]
            name = str(last["metadata"]["name"])
            cluster.delete(str(last["kind"]), name, namespace=sister.namespace)
        for done in reversed(made):
            cluster.delete(done.kind, done.name, uid=done.uid, namespace=sister.namespace)
        raise
    return replace(sister, created=tuple(made))


def _created(item: KubernetesObject) -> CreatedObject:
    metadata: Any = item.get("metadata") or {}
    uid = metadata.get("uid")
    return CreatedObject(
        kind=str(item.get("kind")),
        name=str(metadata.get("name")),
        uid=None if uid is None else str(uid),
    )
