"""Small targets and plans, made here, for the tests of the sister."""

from __future__ import annotations

from typing import Any

from solscope.capture import snapshot
from solscope.capture.sister import assembly, shapes, target
from solscope.model.plan import (
    CapturePlan,
    CostEstimate,
    LaunchFilter,
    Level,
    MetricList,
    PassEstimate,
    PassMethod,
    Strategy,
    Window,
)
from solscope.model.sister import Sister, SisterOptions

NCU_ARGUMENTS = ("--target-processes", "all", "--kernel-name", "regex:gemm", "--launch-count", "3")


def read_manifest(text: str, where: str) -> tuple[Any, ...]:
    """The objects of a manifest, as the verb reads them."""
    objects = snapshot.read_objects(text, where)
    shapes.check_all(objects, where)
    return objects


def a_plan(**changes: Any) -> CapturePlan:
    """A plan that profiles three launches of one kernel on an H100."""
    window = changes.pop("window", Window.WHOLE_RUN)
    values: dict[str, Any] = {
        "level": Level.ROOFLINE,
        "chip": "GH100",
        "strategy": Strategy.LAUNCH,
        "strategy_reason": "the sister starts the server itself",
        "metrics": MetricList(name="roofline", chip="GH100", metrics=("gpu__time_duration.sum",)),
        "launches": LaunchFilter(kernel="regex:gemm", count=3, window=window),
        "passes": PassEstimate(
            predicted=4,
            method=PassMethod.TABLE,
            counter_passes=3,
            other_passes=1,
            low=3,
            high=5,
            source="test",
        ),
        "cost": CostEstimate(pause_s=1.0, total_s=3.0, backup_bytes=None, report_bytes=1e6),
        "arguments": NCU_ARGUMENTS,
    }
    return CapturePlan(**(values | changes))


def a_container(**changes: Any) -> dict[str, Any]:
    """A vLLM server on one GPU, with probes, a port and a token by reference."""
    token = {"secretKeyRef": {"name": "hub", "key": "token"}}
    container: dict[str, Any] = {
        "name": "server",
        "image": "vllm/vllm-openai:v0.19.0",
        "command": ["vllm", "serve", "org/model", "--port", "8000"],
        "env": [{"name": "HF_TOKEN", "valueFrom": token}],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "livenessProbe": {"httpGet": {"path": "/health", "port": "http"}},
    }
    return {key: value for key, value in (container | changes).items() if value is not None}


def a_deployment(
    *containers: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A Deployment ``chat`` in namespace ``prod``, labelled ``app=chat``."""
    labels = {"app": "chat"} if labels is None else labels
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "prod"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": list(containers or (a_container(),)), **spec},
            },
        },
    }


def an_object(kind: str, name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Any other object of namespace ``prod``."""
    metadata = {"name": name, "namespace": "prod"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, **more}


def a_sister(
    *objects: dict[str, Any],
    plan: CapturePlan | None = None,
    options: SisterOptions | None = None,
    container: str | None = None,
) -> Sister:
    """The sister of the one workload among ``objects``."""
    chosen = target.choose(objects or (a_deployment(),), container=container)
    return assembly.build(
        chosen,
        plan or a_plan(),
        objects=objects or (a_deployment(),),
        options=options or SisterOptions(),
        plan_digest="0" * 64,
    )


def pod_spec(sister: Sister) -> dict[str, Any]:
    """The pod spec of the object that owns the sister's pod."""
    spec: dict[str, Any] = sister.objects[-1]["spec"]["template"]["spec"]
    return spec


def server_of(sister: Sister) -> dict[str, Any]:
    """The profiled container."""
    found: dict[str, Any] = next(
        item for item in pod_spec(sister)["containers"] if item["name"] == sister.container
    )
    return found


def codes(sister: Sister, *, blocking: bool = False) -> list[str]:
    """The codes of all findings, or of those that refuse."""
    return [item.code for item in sister.findings if item.blocks or not blocking]
