"""A sister's objects into the cluster: rehearsed first, whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solscope.capture.sister import admission, owners, refusal, surroundings
from solscope.cluster.port import Cluster, Conflict, Refused
from solscope.errors import ClusterError
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding
from solscope.model.sister import Change, CreatedObject, Sister

_NO_DRY_RUN = "does not support dry run"
"""What the API server says where a webhook may have side effects."""


def rehearse(cluster: Cluster, sister: Sister) -> Sister:
    """Ask the server, without creating, whether it would take the sister, and as what.

    The bare pod is asked about first: quota and Pod Security refuse pods, and a Job that holds
    a refused pod looks accepted; and webhooks change pods. A refusal becomes a finding with the
    server's own words, and so does a change that undoes the isolation.
    """
    findings: list[Finding] = []
    admitted: tuple[Change, ...] = ()
    pod = owners.pod_of(sister)
    for item in (pod, *sister.objects):
        try:
            answer = cluster.create(item, dry_run=True)
        except Refused as error:
            findings.append(_refused(item, error))
        except Conflict as error:
            findings.append(_exists(item, error))
        else:
            if item is pod:
                admitted = admission.changes(sister, answer)
                findings += judge(cluster, sister, answer)
            else:
                findings += owners.judge(item, answer)
    every = (*sister.findings, *findings)
    if any(finding.blocks for finding in findings):
        return replace(sister, objects=(), findings=every, admitted=admitted)
    is_asked = not any(finding.code == admission.UNREHEARSED for finding in findings)
    return replace(sister, findings=every, admitted=admitted, rehearsed=is_asked)


def judge(cluster: Cluster, sister: Sister, pod: KubernetesObject) -> list[Finding]:
    """What the cluster's admission made of the sister's pod, and whether anything reaches it now.

    The namespace's rules are read again only where the pod has labels that nobody asked for.
    """
    found = list(admission.findings(sister, pod))
    added = admission.labels_added(sister, pod)
    if added:
        namespace = sister.namespace or cluster.namespace
        seen = surroundings.read(cluster, namespace, progress=lambda items, _: iter(items))
        found += admission.reached(sister, added, seen.objects)
    return found


def _refused(item: KubernetesObject, error: Refused) -> Finding:
    where = _reference(item)
    if _NO_DRY_RUN in error.what:
        return admission.unrehearsed(where, error.what)
    return refusal.block(
        "sister-not-admitted",
        where,
        f"the cluster would refuse it: {error.what}",
        "change what that text names, or ask the namespace's owner",
        error.what,
    )


def _exists(item: KubernetesObject, error: Conflict) -> Finding:
    return refusal.block(
        "sister-exists",
        _reference(item),
        f"the cluster would refuse it: {error.what}",
        "remove the earlier one, or give another --experiment",
        error.what,
    )


def _reference(item: KubernetesObject) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"


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
