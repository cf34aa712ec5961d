"""Rules of a namespace in, evidence out: which of them would reach a pod with given labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from solscope.capture.sister import queries, rules
from solscope.capture.sister.rules import Reference, Rule
from solscope.model.cluster import KubernetesObject
from solscope.model.sister import Effect, Evidence, IsolationProof

UNKNOWN_VALUE = "*"


def labels_as_created(kind: str, name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of the pod as the controller of ``kind`` will create it.

    Values that only the cluster knows are :data:`UNKNOWN_VALUE`; no selector for a given value
    can match them, one that asks for the key alone does.
    """
    if kind == "Deployment":
        return {**labels, "pod-template-hash": UNKNOWN_VALUE}
    uid = {"batch.kubernetes.io/controller-uid": UNKNOWN_VALUE, "controller-uid": UNKNOWN_VALUE}
    return {**labels, "batch.kubernetes.io/job-name": name, "job-name": name, **uid}


def prove(
    objects: Iterable[KubernetesObject],
    *,
    namespace: str | None,
    target: tuple[str, str],
    target_labels: Mapping[str, str],
    sister: tuple[str, str],
    sister_labels: Mapping[str, str],
    container: str | None = None,
    accept: Iterable[str] = (),
    unread: Iterable[str] = (),
) -> IsolationProof:
    """Match every rule of ``objects`` against both sets of labels.

    ``target`` and ``sister`` are (kind, name), ``container`` is the profiled one. ``accept``
    holds ``kind/name`` of objects whose match the user allows; what sends requests is never
    allowed. Objects that live in another namespace for certain are left out.
    """
    accepted = tuple(accept)
    allowed = {item.lower() for item in accepted}
    # The last five letters are the controller's choice.
    copy = queries.Copy(pod=f"{sister[1]}-xxxxx", namespace=namespace, container=container)
    evidence = [
        _judge(rule, target_labels, sister_labels, allowed)
        for rule in rules.CONVENTIONS
        if rule.test(target_labels) or rule.test(sister_labels)
    ]
    for item in objects:
        if not _may_reach(item, namespace):
            continue
        for rule in rules.rules(item):
            evidence.append(_judge(rule, target_labels, sister_labels, allowed))
        for reference in rules.references(item):
            evidence.append(_judge_reference(reference, target, sister))
        for query in queries.of(item, copy):
            evidence.append(_judge_query(query, item, allowed))
    return IsolationProof(
        labels=dict(sister_labels),
        evidence=tuple(evidence),
        unread=tuple(unread),
        accepted=accepted,
    )


def _judge(
    rule: Rule,
    target_labels: Mapping[str, str],
    sister_labels: Mapping[str, str],
    allowed: set[str],
) -> Evidence:
    matches_sister = rule.test(sister_labels)
    effect = Effect.CLEAR
    if matches_sister:
        if rule.harmless:
            effect = Effect.APPLIES
        elif rule.channel != rules.TRAFFIC and f"{rule.kind}/{rule.name}".lower() in allowed:
            effect = Effect.ACCEPTED
        else:
            effect = Effect.REFUSES
    return Evidence(
        kind=rule.kind,
        name=rule.name,
        path=rule.path,
        rule=rule.text,
        channel=rule.channel,
        matches_target=rule.test(target_labels),
        matches_sister=matches_sister,
        effect=effect,
        note=rule.note,
    )


def _judge_reference(
    reference: Reference, target: tuple[str, str], sister: tuple[str, str]
) -> Evidence:
    matches_sister = reference.target == "/".join(sister)
    return Evidence(
        kind=reference.kind,
        name=reference.name,
        path=reference.path,
        rule=f"by name: {reference.target}",
        channel=reference.channel,
        matches_target=reference.target == "/".join(target),
        matches_sister=matches_sister,
        effect=Effect.REFUSES if matches_sister else Effect.CLEAR,
    )


def _judge_query(query: queries.Query, item: KubernetesObject, allowed: set[str]) -> Evidence:
    kind, name = str(item.get("kind")), str((item.get("metadata") or {}).get("name"))
    effect = Effect.CLEAR
    if query.counts:
        is_allowed = f"{kind}/{name}".lower() in allowed
        effect = Effect.ACCEPTED if is_allowed else Effect.REFUSES
    return Evidence(
        kind=kind,
        name=name,
        path=query.path,
        rule=query.text,
        channel=rules.SCALING,
        matches_target=True,
        matches_sister=query.counts,
        effect=effect,
        note="reads what node exporters tell of every pod",
    )


def _may_reach(item: KubernetesObject, namespace: str | None) -> bool:
    own = (item.get("metadata") or {}).get("namespace")
    if own is None or namespace is None or own == namespace:
        return True
    spec = item.get("spec") or {}
    return isinstance(spec, Mapping) and "namespaceSelector" in spec
