"""Queries by which an autoscaler counts pods that no monitor scrapes.

Node exporters tell of every pod: GPU load by DCGM, CPU and memory by the kubelet, readiness by
kube-state-metrics. A copy that loads a model for minutes, or is profiled, would move their means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from solscope.model.cluster import KubernetesObject

_SCALERS = frozenset({"ScaledObject", "ScaledJob"})
_SELECTED = re.compile(
    r"\b(?P<metric>(?:DCGM|container|kube_pod|nvidia)_\w+)(?:\s*\{(?P<labels>[^}]*)\})?"
)
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
# Labels that say nothing of a pod: a copy can have any value of theirs.
_OF_PLACES = re.compile(
    r"job|instance|cluster|node|(?:exported_)?Hostname|hostname|gpu|UUID|device|modelName|"
    r"endpoint|service|metrics_path|resource|unit|condition|phase|DCGM_\w+|err_\w+|prometheus|id|"
    r"image",
    re.IGNORECASE,
)
_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The sister's pod as exporters name it. ``None``: not known."""

    pod: str
    namespace: str | None
    container: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query of a scaler, where it stands, and whether it counts the sister."""

    path: str
    text: str
    counts: bool


def of(item: KubernetesObject, copy: Copy) -> Iterator[Query]:
    """Every query of a scaler that reads what node exporters tell of pods."""
    if item.get("kind") not in _SCALERS:
        return
    for index, trigger in enumerate((item.get("spec") or {}).get("triggers") or ()):
        metadata = trigger.get("metadata") if isinstance(trigger, Mapping) else None
        text = (metadata or {}).get("query") if isinstance(metadata, Mapping) else None
        if not isinstance(text, str):
            continue
        selected = list(_SELECTED.finditer(text))
        if selected:
            counts = any(_admits(match["labels"] or "", copy) for match in selected)
            shown = " ".join(text.split())[:_SHOWN]
            yield Query(path=f"spec.triggers[{index}].metadata.query", text=shown, counts=counts)


def _admits(labels: str, copy: Copy) -> bool:
    """Whether series of the copy pass every matcher of a selector."""
    return all(
        _passes(_value(name, copy), operator, wanted)
        for name, operator, wanted in _MATCHER.findall(labels)
        if not _OF_PLACES.fullmatch(name)
    )


def _value(name: str, copy: Copy) -> str | None:
    """The copy's value of a label: empty for the labels of pods, as it has none of the target's."""
    own: dict[str, str | None] = {
        "pod": copy.pod,
        "namespace": copy.namespace,
        "container": copy.container,
    }
    plain = name.removeprefix("exported_").removesuffix("_name")
    return own.get(plain, "")


def _passes(value: str | None, operator: str, wanted: str) -> bool:
    if value is None:
        return True
    if operator in ("=", "!="):
        return (value == wanted) is (operator == "=")
    try:
        found = re.fullmatch(wanted.replace("\\\\", "\\"), value) is not None
    except re.error:
        return True
    return found is (operator == "=~")
