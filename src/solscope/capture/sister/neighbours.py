"""GPUs that other pods use: how a copy could come to share one, and what keeps it away.

Whoever shares a GPU with it would lose memory and time to the copy, have its clocks locked, and be
counted in its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from solscope.capture.sister.refusal import block, node_labels
from solscope.capture.sister.target import accelerators
from solscope.model.cluster import KubernetesObject
from solscope.model.finding import Finding
from solscope.model.sister import Action, Change, SisterTarget

PRIVILEGED = "privileged"
"""What ``--accept`` takes for a container that sees every GPU of its node."""

# Labels of nodes whose GPUs are shared or cut up, as NVIDIA's feature discovery and GKE set them.
# Both kinds can offer a slice under the plain name nvidia.com/gpu.
_SHARED_NODES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("nvidia.com/gpu.sharing-strategy", "NotIn", ("time-slicing", "mps")),
    ("nvidia.com/gpu.slices.gi", "DoesNotExist", ()),
    ("cloud.google.com/gke-gpu-sharing-strategy", "DoesNotExist", ()),
    ("cloud.google.com/gke-gpu-partition-size", "DoesNotExist", ()),
)
_COUNT = "nvidia.com/gpu"
_MPS_FOLDER = re.compile(r"(?:^|[/_-])mps(?:$|[/_-])")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def of_target(
    target: SisterTarget, objects: Sequence[KubernetesObject], accept: Sequence[str]
) -> Iterator[Finding]:
    """Why the target's copy would use GPUs of others, whatever it asks for."""
    spec = target.template["spec"]
    server: Mapping[str, Any] = next(
        (c for c in spec.get("containers") or () if c.get("name") == target.container), {}
    )
    where = f"{target.reference} container {target.container}"
    asks = accelerators(server)
    if (
        (server.get("securityContext") or {}).get(PRIVILEGED)
        and PRIVILEGED not in accept
        and not _has_whole_node(asks, target, objects)
    ):
        yield privileged(where)
    yield from _mps(server, spec, where)
    labels = node_labels(objects, target.node)
    for key, operator, _ in _SHARED_NODES:
        if operator == "DoesNotExist" and key in labels:
            yield block(
                "sister-shared-gpu",
                f"Node/{target.node}",
                "its GPUs are shared or cut up, so counters of neighbours would be included",
                "profile on a node whose GPUs are whole",
                f"{key}={labels[key]}",
            )


def privileged(where: str) -> Finding:
    """The refusal of a container that no device plugin restricts to its own GPUs."""
    return block(
        "sister-sees-every-gpu",
        where,
        "privileged: it sees every GPU of its node, whatever it asks for, and would take the first "
        "ones, which may be production's",
        "give it SYS_ADMIN or IPC_LOCK in place of privileged; or, where it has a node for itself, "
        f"--accept {PRIVILEGED}",
        "securityContext.privileged: true",
    )


def _has_whole_node(
    asks: Mapping[str, str], target: SisterTarget, objects: Sequence[KubernetesObject]
) -> bool:
    for item in objects:
        if item.get("kind") == "Node" and (item.get("metadata") or {}).get("name") == target.node:
            every = ((item.get("status") or {}).get("capacity") or {}).get(_COUNT)
            return every is not None and str(every) == asks.get(_COUNT)
    return False


def _mps(server: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> Iterator[Finding]:
    """A control daemon of the node: one client's fault ends all clients of a GPU."""
    shown = [
        str(entry["name"])
        for entry in server.get("env") or ()
        if str(entry.get("name")).startswith("CUDA_MPS_")
    ]
    mounted = {str(mount.get("name")) for mount in server.get("volumeMounts") or ()}
    for volume in spec.get("volumes") or ():
        path = str((volume.get("hostPath") or {}).get("path") or "")
        if volume.get("name") in mounted and _MPS_FOLDER.search(path):
            shown.append(f"hostPath {path}")
    if shown:
        yield block(
            "sister-shared-gpu",
            where,
            f"it uses the node's MPS daemon ({', '.join(shown)}), and so would the copy: a fault "
            "of one client ends all of them",
            "profile a deployment of the same model without MPS",
            *shown,
        )


def stay_away(spec: dict[str, Any]) -> Iterator[Change]:
    """Let the scheduler take no node whose GPUs are shared or cut up."""
    unwanted = [
        {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
        for key, operator, values in _SHARED_NODES
    ]
    affinity = spec.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    # Terms are alternatives; one that holds nothing matches no node, and must stay so.
    terms = (node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [None]
    changed = [
        term
        if term == {}
        else {
            **(term or {}),
            "matchExpressions": [*((term or {}).get("matchExpressions") or ()), *unwanted],
        }
        for term in terms
    ]
    required = {**(node.get(_REQUIRED) or {}), "nodeSelectorTerms": changed}
    spec["affinity"] = {**affinity, "nodeAffinity": {**node, _REQUIRED: required}}
    yield Change(
        path="spec.affinity.nodeAffinity",
        action=Action.CHANGED if node else Action.ADDED,
        what="no node whose GPUs are time-sliced, under MPS, or cut up",
        why="the copy would take memory and time of whoever has the same GPU",
    )
