"""Small workloads for tests, made by hand: every field that a test does not name is harmless."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from solscope.capture import engine, snapshot
from solscope.capture.snapshot.inside import from_texts
from solscope.model.cluster import WorkloadSnapshot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
H100_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
    "nvidia.com/cuda.runtime-version.full": "13.0",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/gpu.replicas": "1",
}
SERVE = ["vllm", "serve", "org/model-8b"]


def container(**fields: Any) -> dict[str, Any]:
    """A server's container: one GPU, vLLM 0.28."""
    return {
        "name": "server",
        "image": "vllm/vllm-openai:v0.28.0",
        "command": SERVE,
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        **fields,
    }


def deployment(*containers: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A Deployment of one replica in namespace ``serving``."""
    replicas = pod.pop("replicas", 1)
    labels = pod.pop("labels", {"app": "chat"})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "serving", "uid": "d-1"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "chat"}},
            "template": {
                "metadata": {"labels": labels, "annotations": pod.pop("annotations", {})},
                "spec": {"containers": list(containers) or [container()], **pod},
            },
        },
    }


def running(obj: dict[str, Any], name: str = "chat-1", node: str = "gpu-a") -> dict[str, Any]:
    """A pod as the Deployment's ReplicaSet made it."""
    template = obj["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "serving",
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat-rs", "uid": "r-1",
                 "controller": True}
            ],
        },
        "spec": {**template["spec"], "nodeName": node},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": c["name"], "ready": True, "restartCount": 0}
                for c in template["spec"]["containers"]
            ],
        },
    }  # fmt: skip


def replica_set(obj: dict[str, Any]) -> dict[str, Any]:
    """The ReplicaSet between a Deployment and its pods."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": "chat-rs",
            "namespace": "serving",
            "uid": "r-1",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": obj["metadata"]["name"],
                 "uid": "d-1", "controller": True}
            ],
        },
        "spec": {"replicas": 1, "template": obj["spec"]["template"]},
    }  # fmt: skip


def node(name: str = "gpu-a", **labels: str) -> dict[str, Any]:
    """A node with eight H100, its labels laid over."""
    own = {**H100_LABELS, **{k.replace("__", "/"): v for k, v in labels.items()}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own},
        "status": {"capacity": {"memory": "2000Gi", "nvidia.com/gpu": "8"}},
    }


def labelled_node(labels: dict[str, str], name: str = "gpu-a") -> dict[str, Any]:
    """A node with these labels laid over those of an H100 node."""
    made = node(name)
    made["metadata"]["labels"] = {**made["metadata"]["labels"], **labels}
    return made


def namespace(level: str | None = None, name: str = "serving") -> dict[str, Any]:
    """A namespace that enforces a Pod Security level, or none."""
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def taken(
    *objects: dict[str, Any], texts: dict[str, str] | None = None, **options: Any
) -> WorkloadSnapshot:
    """The snapshot of the only workload among the objects; ``texts``: what exec would say."""
    (found,) = snapshot.from_objects(
        objects or (deployment(),),
        target=options.get("target"),
        container=options.get("container"),
        namespace="serving",
        source="test",
        now=NOW,
        recognises=engine.recognises,
    )
    if found.server is not None:
        found = replace(found, engine=engine.from_container(found.server))
    if texts is not None:
        found = replace(found, inside=from_texts(texts, found.container or ""))
    return found
