"""Selectors mean here what they mean to Kubernetes, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sisters import a_deployment, a_sister, an_object, codes

from solscope.capture.sister import rules, selectors
from solscope.model.sister import Effect, Evidence, SisterOptions


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b,c=d", {"a": "b"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b,c)", {"a": "c"}, False),
        ("a notin (b,c)", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (b),!c,d", {"a": "b", "d": "1"}, True),
        ("", {}, True),
        ("((", {"a": "b"}, True),
    ],
)
def test_a_label_selector_text_means_what_kubectl_means(
    text: str, labels: dict[str, str], expected: bool
) -> None:
    assert selectors.matches(selectors.parse(text), labels) is expected


def test_labels_and_expressions_must_both_hold() -> None:
    selector = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}],
    }
    assert selectors.matches(selector, {"app": "x"})
    assert not selectors.matches(selector, {"app": "x", "tier": "test"})


def evidence(*objects: dict[str, Any], **options: Any) -> list[Evidence]:
    sister = a_sister(a_deployment(), *objects, options=SisterOptions(**options))
    assert sister.proof is not None
    return [item for item in sister.proof.evidence if item.kind != "Deployment"]


def refusing(*objects: dict[str, Any], **options: Any) -> list[str]:
    sister = a_sister(a_deployment(), *objects, options=SisterOptions(**options))
    return [item.where for item in sister.findings if item.code == "sister-not-isolated"]


EVERY_POD: dict[str, Any] = {}
BY_ABSENCE = {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]}


@pytest.mark.parametrize(
    "item",
    [
        an_object("Service", "x", {"selector": {"app": "chat"}}),
        an_object("InferencePool", "x", {"selector": {"app": "chat"}}),
        an_object("InferencePool", "x", {"selector": {"matchLabels": {"app": "chat"}}}),
        an_object("PodMonitor", "x", {"selector": {"matchLabels": {"app": "chat"}}}),
        an_object("NetworkPolicy", "x", {"podSelector": {"matchLabels": {"app": "chat"}}}),
        an_object("PodDisruptionBudget", "x", {"selector": {"matchLabels": {"app": "chat"}}}),
        an_object(
            "HorizontalPodAutoscaler",
            "x",
            {"scaleTargetRef": {"kind": "Deployment", "name": "chat"}},
        ),
        an_object("ScaledObject", "x", {"scaleTargetRef": {"name": "chat"}}),
        an_object("ReplicaSet", "x", {"selector": {"matchLabels": {"app": "chat"}}}),
        an_object("ServiceEntry", "x", {"workloadSelector": {"labels": {"app": "chat"}}}),
    ],
)
def test_what_reaches_the_target_does_not_reach_the_sister(item: dict[str, Any]) -> None:
    (found,) = evidence(item)
    assert found.matches_target
    assert not found.matches_sister
    assert found.effect is Effect.CLEAR


@pytest.mark.parametrize(
    "item",
    [
        an_object("Service", "x", {"selector": {"experiment": "e1"}}),
        an_object("InferencePool", "x", {"selector": EVERY_POD}),
        an_object("PodMonitor", "x", {"selector": EVERY_POD}),
        an_object("PodMonitor", "x", {"selector": BY_ABSENCE}),
        an_object("ServiceMonitor", "x", {"selector": BY_ABSENCE}),
        an_object("NetworkPolicy", "x", {"podSelector": BY_ABSENCE}),
        an_object("PodDisruptionBudget", "x", {"selector": EVERY_POD}),
        an_object("ReplicaSet", "x", {"selector": BY_ABSENCE}),
        an_object("Curious", "x", {"deep": [{"podSelector": BY_ABSENCE}]}),
    ],
)
def test_one_match_refuses_and_names_the_object(item: dict[str, Any]) -> None:
    assert refusing(item, experiment="e1") == [f"{item['kind']}/x"]
    # What sends requests can never be allowed.
    sends = [f"{item['kind']}/x"] if item["kind"] in ("Service", "InferencePool") else []
    assert refusing(item, experiment="e1", accept=(f"{item['kind'].lower()}/x",)) == sends


def test_a_refused_sister_has_no_objects() -> None:
    sister = a_sister(a_deployment(), an_object("PodMonitor", "x", {"selector": EVERY_POD}))
    assert sister.is_refused
    assert sister.objects == ()


def test_a_service_without_selector_selects_nothing() -> None:
    (found,) = evidence(an_object("Service", "x", {}))
    assert (found.matches_target, found.matches_sister) == (False, False)


def test_a_policy_for_every_pod_restricts_the_sister_and_does_not_refuse() -> None:
    (found,) = evidence(an_object("NetworkPolicy", "deny", {"podSelector": {}}))
    assert found.effect is Effect.APPLIES


def test_egress_that_the_target_had_by_label_is_reported_as_lost() -> None:
    policy = an_object(
        "NetworkPolicy",
        "out",
        {"podSelector": {"matchLabels": {"app": "chat"}}, "egress": [{}]},
    )
    sister = a_sister(a_deployment(), policy)
    assert "sister-selector-lost" in codes(sister)
    assert not sister.is_refused


def test_being_named_as_a_peer_of_another_policy_is_reported_as_lost() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "chat"}}}
    policy = an_object(
        "NetworkPolicy",
        "store",
        {"podSelector": {"matchLabels": {"app": "store"}}, "ingress": [{"from": [peer]}]},
    )
    found = [item for item in evidence(policy) if item.stops_matching]
    assert [item.path for item in found] == ["spec.ingress[0].from[0].podSelector"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--k8s-label-selector", "app=chat"],
        ["--k8s-label-selector=app=chat"],
        ["--selector", "app=chat", "tier=gpu", "--port", "1"],
        ["--service-discovery", "--prefill-selector", "app=chat"],
    ],
)
def test_a_router_that_picks_pods_by_label_is_evidence(arguments: list[str]) -> None:
    router = an_object(
        "Pod", "router", {"containers": [{"name": "r", "image": "r", "args": arguments}]}
    )
    (found,) = evidence(router)
    assert found.channel == rules.TRAFFIC
    assert "app=chat" in found.rule
    assert not found.matches_sister


def test_a_router_selector_that_matches_the_sister_refuses() -> None:
    arguments = ["--k8s-label-selector", "experiment"]
    router = an_object(
        "Pod", "router", {"containers": [{"name": "r", "image": "r", "args": arguments}]}
    )
    assert refusing(router) == ["Pod/router"]


def test_a_gateway_that_acts_on_a_bare_label_is_evidence_and_refuses_if_given_back() -> None:
    labels = {"model.aibrix.ai/name": "chat"}
    target = a_deployment(labels=labels)
    assert not a_sister(target).is_refused
    given_back = a_sister(target, options=SisterOptions(labels=labels))
    assert "sister-not-isolated" in codes(given_back, blocking=True)


def test_objects_of_another_namespace_are_left_out() -> None:
    other = an_object("PodDisruptionBudget", "x", {"selector": EVERY_POD})
    other["metadata"]["namespace"] = "elsewhere"
    assert evidence(other) == []


def test_a_monitor_of_another_namespace_that_looks_everywhere_counts() -> None:
    spec = {"selector": EVERY_POD, "namespaceSelector": {"any": True}}
    other = an_object("PodMonitor", "x", spec)
    other["metadata"]["namespace"] = "monitoring"
    assert refusing(other) == ["PodMonitor/x"]


def test_labels_that_kubernetes_adds_are_matched_too() -> None:
    exists = {"matchExpressions": [{"key": "job-name", "operator": "Exists"}]}
    assert refusing(an_object("PodMonitor", "x", {"selector": exists})) == ["PodMonitor/x"]


def test_endpoints_by_name_are_evidence() -> None:
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "chat-1", "namespace": "prod"},
        "endpoints": [{"targetRef": {"kind": "Pod", "name": "chat-abc"}}],
    }
    (found,) = evidence(slice_)
    assert found.rule == "by name: Pod/chat-abc"
    assert not found.matches_sister


# -- queries of autoscalers ------------------------------------------------------------------


def a_scaler(query: str) -> dict[str, Any]:
    trigger = {"type": "prometheus", "metadata": {"query": query, "threshold": "80"}}
    spec = {"scaleTargetRef": {"name": "chat"}, "triggers": [trigger]}
    return an_object("ScaledObject", "chat-gpu", spec)


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ('avg(DCGM_FI_DEV_GPU_UTIL{namespace="prod"})', True),
        ('avg(DCGM_FI_DEV_GPU_UTIL{exported_namespace="prod",exported_container="server"})', True),
        ("sum(container_memory_working_set_bytes)", True),
        ('avg(DCGM_FI_DEV_GPU_UTIL{gpu="0",pod=~".*chat.*"})', True),
        # The copy's name does not begin as the target's.
        ('avg(DCGM_FI_DEV_GPU_UTIL{pod=~"chat-.*"})', False),
        ('avg(DCGM_FI_DEV_GPU_UTIL{namespace="other"})', False),
        ('avg(DCGM_FI_DEV_GPU_UTIL{container!="server"})', False),
        # Labels of the target's pods it has none of; nobody scrapes it.
        ('avg(DCGM_FI_DEV_GPU_UTIL{label_app="chat"})', False),
        ("sum(vllm:num_requests_waiting)", False),
    ],
)
def test_a_query_that_would_count_the_copy_refuses_it(query: str, counts: bool) -> None:
    assert refusing(a_scaler(query)) == (["ScaledObject/chat-gpu"] if counts else [])
    assert refusing(a_scaler(query), accept=("scaledobject/chat-gpu",)) == []


@pytest.mark.parametrize("kind", ["PodMonitoring", "ClusterPodMonitoring", "VMPodScrape"])
def test_monitors_of_other_makers_count_as_prometheus_does(kind: str) -> None:
    assert refusing(an_object(kind, "all", {"selector": EVERY_POD})) == [f"{kind}/all"]
    one = {"selector": {"matchLabels": {"app": "chat"}}}
    assert refusing(an_object(kind, "one", one)) == []
