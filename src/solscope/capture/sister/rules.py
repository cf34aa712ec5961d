"""Every way in which a namespace's objects pick pods, as rules that can be tested on labels.

Empty selectors mean different things in different objects (a Service's selects nothing, a
PodDisruptionBudget's everything), so kinds that are known are read by their own meaning and
unknown ones conservatively.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from solscope.capture.sister import selectors
from solscope.model.cluster import KubernetesObject

TRAFFIC, METRICS, POLICY = "traffic", "metrics", "network policy"
DISRUPTION, SCALING, ADOPTION = "disruption budget", "scaling", "adoption"

_ADOPTERS = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job"}
)
# Their selectors choose other things than pods.
_NOT_PODS = frozenset(
    {"PersistentVolumeClaim", "PersistentVolume", "ClusterRole", "ResourceClaim", "Event", "Node"}
)
_SELECTOR_KEYS = frozenset(
    {"selector", "podSelector", "workloadSelector", "endpointSelector", "labelSelector"}
)
_ROUTER_FLAGS = frozenset(
    {
        "--k8s-label-selector",
        "--label-selector",
        "--pod-label-selector",
        "--pod-selector",
        "--selector",
        "--prefill-selector",
        "--decode-selector",
        "--service-discovery-selector",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One way in which one object picks pods."""

    kind: str
    name: str
    path: str
    channel: str
    text: str
    test: Callable[[Mapping[str, str]], bool]
    harmless: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One object that picks a workload by kind and name."""

    kind: str
    name: str
    path: str
    channel: str
    target: str


def rules(item: KubernetesObject) -> Iterator[Rule]:
    """Every way in which one object picks pods by their labels."""
    kind = str(item.get("kind", ""))
    if kind in _NOT_PODS:
        return
    spec = item.get("spec")
    if isinstance(spec, Mapping):
        reader = _READERS.get(kind)
        if reader is not None:
            yield from reader(item, spec)
        elif kind in _ADOPTERS:
            yield from _adopter(item, spec)
        else:
            yield from _unknown(item, spec, "spec")
    yield from _routers(item)


def _name(item: KubernetesObject) -> str:
    return str((item.get("metadata") or {}).get("name", ""))


def _rule(item: KubernetesObject, path: str, channel: str, selector: Any, **more: Any) -> Rule:
    return Rule(
        kind=str(item.get("kind", "")),
        name=_name(item),
        path=path,
        channel=channel,
        text=selectors.show(selector),
        test=lambda labels: selectors.matches(selector, labels),
        **more,
    )


def _service(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    selector = spec.get("selector")
    if selector:
        yield _rule(item, "spec.selector", TRAFFIC, selector)
        return
    yield Rule(
        kind="Service",
        name=_name(item),
        path="spec.selector",
        channel=TRAFFIC,
        text="(none)",
        test=lambda _labels: False,
        note="no selector: its endpoints are set by hand, not by labels",
    )


def _pool(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    yield _rule(item, "spec.selector", TRAFFIC, spec.get("selector") or {})


def _adopter(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    # A Deployment written without selector is refused by the API server: nothing to match.
    if spec.get("selector"):
        yield _rule(item, "spec.selector", ADOPTION, spec["selector"])


def _budget(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    # policy/v1: an empty selector covers every pod, an absent one none.
    if spec.get("selector") is not None:
        yield _rule(item, "spec.selector", DISRUPTION, spec["selector"])


def _monitor(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    yield _rule(item, "spec.selector", METRICS, spec.get("selector") or {})


def _service_monitor(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    yield _rule(
        item,
        "spec.selector",
        METRICS,
        spec.get("selector") or {},
        note="selects Services, and the sister has none",
        harmless=selectors.is_empty(spec.get("selector") or {}),
    )


def _policy(item: KubernetesObject, spec: Mapping[str, Any]) -> Iterator[Rule]:
    selector = spec.get("podSelector") or {}
    whole = selectors.is_empty(selector)
    note = "covers every pod of the namespace: it restricts the sister too" if whole else None
    yield _rule(item, "spec.podSelector", POLICY, selector, harmless=whole, note=note)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule_index, rule in enumerate(spec.get(direction) or ()):
            for peer_index, peer in enumerate((rule or {}).get(peers) or ()):
                if "podSelector" not in peer:
                    continue
                path = f"spec.{direction}[{rule_index}].{peers}[{peer_index}].podSelector"
                # A peer is whom others may talk to: matching it sends nothing to the sister.
                note = "names whom other pods may talk to"
                yield _rule(item, path, POLICY, peer["podSelector"] or {}, harmless=True, note=note)


def _silent(_item: KubernetesObject, _spec: Mapping[str, Any]) -> Iterator[Rule]:
    yield from ()


_READERS: Mapping[str, Callable[[KubernetesObject, Mapping[str, Any]], Iterator[Rule]]] = {
    "Service": _service,
    "InferencePool": _pool,
    "PodDisruptionBudget": _budget,
    "PodMonitor": _monitor,
    "PodMonitoring": _monitor,
    "ClusterPodMonitoring": _monitor,
    "VMPodScrape": _monitor,
    "ServiceMonitor": _service_monitor,
    "NetworkPolicy": _policy,
    "HorizontalPodAutoscaler": _silent,
    "Pod": _silent,
}


def _unknown(item: KubernetesObject, node: Any, path: str) -> Iterator[Rule]:
    """Selectors of a kind that is not known, wherever they stand outside a pod template."""
    if isinstance(node, Mapping):
        if "containers" in node:
            return
        for key, value in node.items():
            here = f"{path}.{key}"
            if key in _SELECTOR_KEYS and selectors.is_selector(value):
                yield _rule(item, here, f"unknown ({item.get('kind')})", value)
            else:
                yield from _unknown(item, value, here)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _unknown(item, value, f"{path}[{index}]")


# -- conventions: pods are found by a label's mere presence, and no object says so ------------


def _convention(who: str, key: str, channel: str) -> Rule:
    return Rule(
        kind=who,
        name="by-label",
        path="labels",
        channel=channel,
        text=key,
        test=lambda labels: key in labels,
        note="acts on the label alone; no object in the namespace need say so",
    )


CONVENTIONS = (
    _convention("AIBrixGateway", "model.aibrix.ai/name", TRAFFIC),
    _convention("LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name", ADOPTION),
    _convention("KubeRay", "ray.io/cluster", ADOPTION),
    _convention("Knative", "serving.knative.dev/revision", TRAFFIC),
    _convention("KServe", "serving.kserve.io/inferenceservice", TRAFFIC),
    _convention("ArgoCD", "argocd.argoproj.io/instance", ADOPTION),
)

# -- routers that pick pods by label, without a Service --------------------------------------


def _routers(item: KubernetesObject) -> Iterator[Rule]:
    for path, words in _command_lines(item.get("spec"), "spec"):
        for flag, value in _selector_arguments(words):
            selector = selectors.parse(value)
            yield _rule(item, f"{path} {flag}", TRAFFIC, selector, note="a router's argument")


def _command_lines(node: Any, path: str) -> Iterator[tuple[str, list[str]]]:
    if isinstance(node, Mapping):
        if isinstance(node.get("image"), str) or "command" in node or "args" in node:
            words = [*_texts(node.get("command")), *_texts(node.get("args"))]
            if words:
                yield path, words
        for key, value in node.items():
            yield from _command_lines(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _command_lines(value, f"{path}[{index}]")


def _texts(value: Any) -> list[str]:
    """The words of a command; other kinds than Kubernetes' own may give one text for all."""
    if isinstance(value, str):
        return [value]
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _selector_arguments(words: list[str]) -> Iterator[tuple[str, str]]:
    split = [part for word in words for part in word.split()] if len(words) < 3 else words
    for index, word in enumerate(split):
        flag, _, value = word.partition("=")
        if flag not in _ROUTER_FLAGS:
            continue
        if value:
            yield flag, value
            continue
        values: list[str] = []
        for following in split[index + 1 :]:
            if following.startswith("-"):
                break
            values.append(following)
        if values:
            yield flag, ",".join(values)


# -- scalers, by name ------------------------------------------------------------------------


def references(item: KubernetesObject) -> Iterator[Reference]:
    """Every way in which one object picks a workload by name, or a pod by its name."""
    kind, spec = str(item.get("kind", "")), item.get("spec")
    if isinstance(spec, Mapping):
        for key in ("scaleTargetRef", "targetRef"):
            found = spec.get(key)
            if isinstance(found, Mapping) and found.get("name"):
                wanted = f"{found.get('kind', 'Deployment')}/{found['name']}"
                yield Reference(
                    kind=kind, name=_name(item), path=f"spec.{key}", channel=SCALING, target=wanted
                )
    if kind in ("EndpointSlice", "Endpoints"):
        for pod in _endpoint_pods(item):
            yield Reference(
                kind=kind,
                name=_name(item),
                path="endpoints.targetRef",
                channel=TRAFFIC,
                target=f"Pod/{pod}",
            )


def _endpoint_pods(item: KubernetesObject) -> Iterator[str]:
    holders = list(item.get("endpoints") or ())
    for subset in item.get("subsets") or ():
        holders.extend(subset.get("addresses") or ())
    for holder in holders:
        found = holder.get("targetRef") or {}
        if found.get("name"):
            yield str(found["name"])
