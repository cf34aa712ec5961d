"""Each kind of workload: where its pods come from, and how they are found."""

from __future__ import annotations

from typing import Any

import pytest

from solscope.capture.snapshot import kinds, podspec
from solscope.capture.snapshot.choice import same_kind, split_target
from solscope.cluster.quantity import quantity
from solscope.errors import UsageError

POD = {"containers": [{"name": "s", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}


def obj(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "w"}, "spec": spec}


@pytest.mark.parametrize(
    ("made", "roles"),
    [
        (obj("Deployment", {"template": TEMPLATE}), [("", 1)]),
        (obj("StatefulSet", {"template": TEMPLATE, "replicas": 3}), [("", 3)]),
        (obj("Rollout", {"template": TEMPLATE}), [("", 1)]),
        (obj("Job", {"template": TEMPLATE}), [("", 1)]),
        (obj("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}), [("", 1)]),
        (obj("LeaderWorkerSet", {"leaderWorkerTemplate": {
            "leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}}),
         [("leader", 1), ("worker", 1)]),
        (obj("LeaderWorkerSet", {"leaderWorkerTemplate": {"workerTemplate": TEMPLATE}}),
         [("worker", 1)]),
        (obj("RayCluster", {"headGroupSpec": {"template": TEMPLATE},
                            "workerGroupSpecs": [{"groupName": "g", "template": TEMPLATE}]}),
         [("head", 1), ("worker g", 1)]),
        (obj("RayService", {"rayClusterConfig": {"headGroupSpec": {"template": TEMPLATE}}}),
         [("head", 1)]),
        (obj("RayJob", {"rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}}}),
         [("head", 1)]),
        (obj("StormService", {"template": {"spec": {"roles": [
            {"name": "prefill", "replicas": 2, "template": TEMPLATE}]}}}), [("prefill", 2)]),
        (obj("InferenceService", {"predictor": POD}), [("", 1)]),
        (obj("LLMInferenceService", {"template": POD, "worker": POD}), [("", 1), ("worker", None)]),
        (obj("NIMService", {"image": {"repository": "r", "tag": "1"}, "replicas": 2}), [("", 2)]),
        (obj("Service", {"selector": {"a": "b"}}), []),
        (obj("ConfigMap", {}), []),
    ],
)  # fmt: skip
def test_each_kind_gives_its_templates(
    made: dict[str, Any], roles: list[tuple[str, int | None]]
) -> None:
    assert [(r.role, r.replicas) for r in kinds.roles(made)] == roles


def test_a_runtime_completes_its_inference_service() -> None:
    runtime = obj(
        "ServingRuntime", {"containers": [{"name": "kserve-container", "image": "own:1"}]}
    )
    runtime["metadata"]["name"] = "r"
    gpus = {"limits": {"nvidia.com/gpu": "1"}}
    service = obj("InferenceService", {"predictor": {"model": {"runtime": "r", "resources": gpus}}})
    (role,) = kinds.roles(service, [service, runtime])
    (server,) = podspec.pod(role.template).containers
    assert (server.image, server.gpus, role.is_complete) == ("own:1", 1, True)


@pytest.mark.parametrize(
    ("made", "selector"),
    [
        (obj("Deployment", {"selector": {"matchLabels": {"a": "b", "c": "d"}}}), "a=b,c=d"),
        (obj("Deployment", {"selector": {"matchExpressions": [
            {"key": "k", "operator": "In", "values": ["x", "y"]},
            {"key": "e", "operator": "Exists"},
            {"key": "n", "operator": "DoesNotExist"},
            {"key": "o", "operator": "NotIn", "values": ["z"]}]}}),
         "k in (x,y),e,!n,o notin (z)"),
        (obj("ReplicationController", {"selector": {"a": "b"}}), "a=b"),
        (obj("LeaderWorkerSet", {}), "leaderworkerset.sigs.k8s.io/name=w"),
        (obj("Unknown", {}), None),
    ],
)  # fmt: skip
def test_the_pods_are_found_by_the_kinds_own_rule(
    made: dict[str, Any], selector: str | None
) -> None:
    assert kinds.pod_selector(made) == selector


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("500m", 0.5), ("2k", 2e3), ("1Ki", 1024.0), ("1e3", 1000.0), (4, 4.0),
     ("x", None), ("1Q", None), (None, None), ("1e999", None), ("1.2.3", None)],
)  # fmt: skip
def test_quantities_are_read_as_kubernetes_writes_them(text: object, value: float | None) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize(
    ("target", "expected"),
    [("deploy/x", ("deploy", "x")), ("x", ("pod", "x")), ("deployments.apps/x",
     ("deployments.apps", "x"))],
)  # fmt: skip
def test_a_target_is_kind_and_name(target: str, expected: tuple[str, str]) -> None:
    assert split_target(target) == expected


@pytest.mark.parametrize("target", ["/x", "deploy/", "a/b/c"])
def test_what_names_nothing_is_refused(target: str) -> None:
    with pytest.raises(UsageError):
        split_target(target)


@pytest.mark.parametrize("word", ["deploy", "deployment", "Deployments", "deployments.apps"])
def test_kinds_are_known_by_short_plural_and_group(word: str) -> None:
    assert same_kind(word, "Deployment")
    assert not same_kind(word, "StatefulSet")
