"""Findings that few clusters give, each from the one fact that causes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.workloads import (
    SERVE,
    container,
    deployment,
    labelled_node,
    node,
    running,
    taken,
)

from solscope.capture import preflight
from solscope.model.cluster import Fact, WorkloadSnapshot
from solscope.model.finding import Finding, Severity


def codes(workload: WorkloadSnapshot) -> set[str]:
    return {finding.code for finding in preflight.findings(workload)}


def finding(workload: WorkloadSnapshot, code: str) -> Finding:
    return next(f for f in preflight.findings(workload) if f.code == code)


def on_node(labels: dict[str, str], **texts: str) -> WorkloadSnapshot:
    made = deployment()
    return taken(made, running(made), labelled_node(labels), texts=texts or None)


def beside(*pods: dict[str, Any], labels: dict[str, str] | None = None) -> WorkloadSnapshot:
    """The workload with other pods on its node."""
    workload = on_node(labels or {})
    return replace(
        workload,
        related={**workload.related, "node-pods": Fact(value=pods, source="list pods")},
    )


def a_pod(name: str, gpus: int = 0, phase: str = "Running") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"image": "x", "resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def served(*words: str, **fields: Any) -> WorkloadSnapshot:
    return taken(deployment(container(command=[*SERVE, *words], **fields)))


def named(model: str) -> WorkloadSnapshot:
    return taken(deployment(container(command=["vllm", "serve", model])))


def in_pod(**fields: Any) -> WorkloadSnapshot:
    return taken(deployment(**fields))


def with_env(name: str, value: str) -> WorkloadSnapshot:
    return taken(deployment(container(env=[{"name": name, "value": value}])))


def with_events(reason: str, message: str) -> WorkloadSnapshot:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "serving"},
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": "Pod", "name": "chat-1"},
    }
    return taken(deployment(), event)


ROWS: tuple[tuple[str, Callable[[], WorkloadSnapshot]], ...] = (
    ("vgpu", lambda: on_node({"nvidia.com/vgpu.present": "true"})),
    ("sandboxed-runtime", lambda: in_pod(runtimeClassName="kata-qemu")),
    ("mig-slice", lambda: on_node({"cloud.google.com/gke-gpu-partition-size": "1g.10gb",
                                   "nvidia.com/mig.strategy": "1g.10gb"})),
    ("not-an-nvidia-gpu", lambda: taken(deployment(container(image="rocm/vllm:1", resources={})))),
    ("profiler-agent-on-node", lambda: beside(a_pod("zymtrace-profiler-x"))),
    ("counters-held-by-dcgm", lambda: beside(a_pod("dcgm-exporter-x"))),
    ("no-free-gpu-on-node", lambda: beside(a_pod("a", 4), a_pod("b", 4))),
    ("metric-not-available", lambda: on_node({"nvidia.com/gpu.product": "NVIDIA-GB10"})),
    ("gpu-not-in-table", lambda: on_node({"nvidia.com/gpu.product": "NVIDIA-Z9",
                                          "nvidia.com/gpu.compute.major": "99"})),
    ("cuda-too-old-for-chip", lambda: on_node({"nvidia.com/gpu.product": "NVIDIA-B200"},
                                              environ="CUDA_VERSION=12.4.1")),
    ("injection-slot-taken", lambda: with_env("LD_PRELOAD", "/opt/x/libinjector.so")),
    ("injection-slot-taken", lambda: taken(deployment(), texts={"maps": "/z/libzymtrace.so"})),
    ("injected-by-operator", lambda: in_pod(labels={"app": "chat", "nvidia-nsight-profile": "on"})),
    ("driver-libraries-incomplete-or-skew",
     lambda: with_env("NVIDIA_DRIVER_CAPABILITIES", "graphics")),
    ("data-parallel", lambda: served("-dp", "2")),
    ("mixture-of-experts", lambda: served("--enable-expert-parallel")),
    ("sparse-attention", lambda: named("deepseek-ai/DeepSeek-V3.2")),
    ("sparse-attention", lambda: served("--attention-backend", "FLASHMLA_SPARSE")),
    ("scaled-to-zero", lambda: in_pod(replicas=0)),
    ("liveness-failing", lambda: with_events("Unhealthy", "Liveness probe failed: timeout")),
    ("no-free-gpu", lambda: with_events("FailedScheduling", "8 Insufficient nvidia.com/gpu")),
    ("already-under-a-profiler",
     lambda: taken(deployment(container(command=["nsys", "profile", *SERVE])))),
    ("config-file-unread", lambda: served("--config", "/etc/x.yaml")),
    ("window-by-endpoint", lambda: served("--profiler-config", '{"profiler": "cuda"}')),
    ("host-namespaces", lambda: in_pod(hostPID=True)),
    ("no-tar-in-image", lambda: taken(deployment(), texts={"which": "/bin/sh"})),
    ("ephemeral-storage-limit", lambda: taken(deployment(container(resources={
        "limits": {"nvidia.com/gpu": "1", "ephemeral-storage": "5Gi"}})))),
)  # fmt: skip


@pytest.mark.parametrize(("code", "make"), ROWS, ids=[f"{c}-{n}" for n, (c, _) in enumerate(ROWS)])
def test_the_fact_gives_the_finding(code: str, make: Callable[[], WorkloadSnapshot]) -> None:
    assert code in codes(make())


def test_an_ordinary_workload_gives_none_of_the_rare_findings() -> None:
    made = deployment()
    rare = {code for code, _ in ROWS}
    assert not rare & codes(taken(made, running(made), node()))


def test_dcgm_is_quiet_on_hopper_and_loud_on_ampere() -> None:
    exporter = a_pod("dcgm-exporter-x")
    ampere = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    assert finding(beside(exporter), "counters-held-by-dcgm").severity is Severity.INFO
    loud = finding(beside(exporter, labels=ampere), "counters-held-by-dcgm")
    assert loud.severity is Severity.WARNING


def test_finished_pods_hold_no_gpu() -> None:
    done = a_pod("done", 8, phase="Succeeded")
    assert "no-free-gpu-on-node" not in codes(beside(done, a_pod("a", 4)))


def test_a_pulled_image_is_no_longer_being_pulled() -> None:
    def event(reason: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": reason.lower(), "namespace": "serving"},
            "reason": reason,
            "message": "image",
            "involvedObject": {"kind": "Pod", "name": "chat-1"},
        }

    assert "image-pull-in-progress" in codes(taken(deployment(), event("Pulling")))
    both = taken(deployment(), event("Pulling"), event("Pulled"))
    assert "image-pull-in-progress" not in codes(both)


def test_a_disruption_budget_of_these_labels_is_named() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "serving"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "chat"}}},
    }
    assert "keep" in finding(taken(deployment(), budget), "disruption-budget").fact


def test_the_drivers_own_file_gives_its_generation() -> None:
    made = deployment(container(image="vllm/vllm-openai:v0.22.0-cu129"))
    module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release"
    workload = taken(made, texts={"driver": module})
    assert "580.95.05" in " ".join(finding(workload, "cuda-version-skew").evidence)


def test_a_scaledobject_shows_what_it_scales_on() -> None:
    scaler = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "k", "namespace": "serving"},
        "spec": {
            "scaleTargetRef": {"name": "chat"},
            "triggers": [{"type": "prometheus", "metadata": {"query": "sum(waiting)"}}],
        },
    }
    found = finding(taken(deployment(), scaler), "autoscaled")
    assert found.evidence == ("scales on prometheus: sum(waiting)",)
