"""The objects that own the sister's pod, or stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from solscope.capture.sister.refusal import block
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding, Severity
from solscope.model.plan import CapturePlan, Strategy
from solscope.model.sister import Sister, SisterOptions, SisterTarget

# Real start-up budgets of large models reach half an hour.
START_S, HOUR_S = 1800, 3600


def metadata(
    target: SisterTarget, plan: CapturePlan, *, labels: Mapping[str, str], plan_digest: str
) -> dict[str, Any]:
    """What every object carries: the experiment's labels, and where it came from."""
    annotations = {
        "solscope/target": f"{target.kind}/{target.name}",
        "solscope/container": target.container,
        "solscope/strategy": plan.strategy.value,
        "solscope/plan": plan_digest,
    }
    if plan.strategy is Strategy.PRELOAD:
        annotations["solscope/unverified"] = "preload"
    where = {"namespace": target.namespace} if target.namespace else {}
    return {**where, "labels": dict(labels), "annotations": annotations}


def config_map(name: str, metadata: Mapping[str, Any], script: str) -> KubernetesObject:
    """The script that replays one operation."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"harness.py": script},
    }


def deployment(
    name: str, metadata: Mapping[str, Any], template: Mapping[str, Any]
) -> KubernetesObject:
    """A Deployment of one pod that never runs twice at once."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": dict(metadata["labels"])},
            "template": template,
        },
    }


def job(
    name: str,
    metadata: Mapping[str, Any],
    template: Mapping[str, Any],
    plan: CapturePlan,
    options: SisterOptions,
) -> KubernetesObject:
    """A Job that runs once, ends at its deadline and is removed by the cluster itself."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": deadline_s(plan, options),
            "ttlSecondsAfterFinished": options.time_to_live_s,
            "template": template,
        },
    }


def deadline_s(plan: CapturePlan, options: SisterOptions) -> int:
    """The user's, or twice the capture and half an hour for the start, an hour at least."""
    if options.deadline_s is not None:
        return options.deadline_s
    planned = plan.cost.total_s or 0
    return max(HOUR_S, START_S + 60 * math.ceil(2 * planned / 60))


def pod_of(sister: Sister) -> KubernetesObject:
    """The bare pod of a sister, for a dry run: quota and Pod Security refuse pods, not Jobs."""
    owner = sister.objects[-1]
    template = owner["spec"]["template"]
    metadata = {**template["metadata"], "name": sister.name}
    if sister.namespace:
        metadata["namespace"] = sister.namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


_ENDS = ("activeDeadlineSeconds", "backoffLimit", "parallelism", "completions")


def judge(asked: KubernetesObject, kept: KubernetesObject) -> Iterator[Finding]:
    """What admission makes of the Job around the pod: one that does not start, or does not end."""
    if asked.get("kind") != "Job":
        return
    where = f"Job/{asked['metadata']['name']}"
    before, after = asked.get("spec") or {}, kept.get("spec") or {}
    if after.get("suspend"):
        yield Finding(
            code="sister-admission-suspended",
            severity=Severity.WARNING,
            where=where,
            fact="the cluster's admission suspends the Job: it starts when a queue takes it, and "
            "never where it names none",
            remedy="name the queue: --label kueue.x-k8s.io/queue-name=QUEUE",
        )
    changed = [field for field in _ENDS if after.get(field) != before.get(field)]
    if changed:
        shown = ", ".join(f"{name}: {before.get(name)} -> {after.get(name)}" for name in changed)
        yield block(
            "sister-admission-job",
            where,
            f"the cluster's admission changes how the Job ends ({shown}): it must run once, and "
            "end by itself",
            "have its policy leave Jobs with the label experiment alone",
        )
