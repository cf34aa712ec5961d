"""A production-like workload, a plan and a ready report, for captures in the test cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from solscope.capture import planfile
from solscope.flows import plan
from solscope.flows.world import World
from solscope.model.capture import CaptureSettings, Limits, Traffic
from solscope.model.plan import CapturePlan
from tests import builder

KERNEL = "rms_norm_kernel"


def a_plan(folder: Path, *, launches: int = 2, kernel: str = "rms_norm", **more: Any) -> Path:
    """A roofline plan of one kernel of the stand-in engine, written as a plan file."""
    usual: dict[str, Any] = {"kernels": (kernel,), "window": "engine-profiler"}
    request = plan.PlanRequest(
        target="deploy/engine",
        chip="H100",
        level="roofline",
        dtype="bf16",
        launches=launches,
        no_library=True,
        **{**usual, **more},
    )
    made = plan.run(request, World()).value
    assert isinstance(made, CapturePlan)
    path = folder / "plan.json"
    path.write_bytes(planfile.to_json(made))
    return path


def an_attach_plan(folder: Path, report: Path) -> Path:
    """The same plan for a second ncu, which is told its report in its own command: the sidecar
    has none of the server's variables."""
    path = a_plan(folder, strategy="attach")
    made = planfile.from_json(path.read_bytes(), where=str(path))
    arguments = (*made.arguments, "--report-from", str(report))
    path.write_bytes(planfile.to_json(replace(made, arguments=arguments)))
    return path


def a_report(
    folder: Path,
    plan_path: Path,
    *,
    kernel: str = KERNEL,
    launches: int = 2,
    name: str = "ready.ncu-rep",
) -> Path:
    """A report with every planned metric of ``launches`` launches."""
    planned = planfile.from_json(plan_path.read_bytes(), where=str(plan_path))
    metrics = {name: _value(name) for name in planned.metrics.metrics}
    kernels = [builder.Kernel(kernel, metrics=metrics) for _ in range(launches)]
    device = builder.Device(name="NVIDIA H100 80GB HBM3", capability=(9, 0), sms=132)
    path = folder / name
    path.write_bytes(builder.report(kernels, device=device))
    return path


def _value(name: str) -> float:
    if name.endswith("per_second"):
        return 1e9
    if "cycles_elapsed" in name:
        return 1e5
    return {"gpu__time_duration.sum": 1e5}.get(name, 64.0)


def production(
    namespace: str,
    report: Path | None,
    *,
    replicas: int = 2,
    image: str = "example.com/vllm-openai:v0.32.0",
    command: tuple[str, ...] = ("vllm", "serve", "tiny", "--port", "8000"),
    **env: Any,
) -> list[dict[str, Any]]:
    """A Deployment ``engine`` with probes and a planted token, and a Service in front of it."""
    variables: dict[str, Any] = {"HF_TOKEN": "hf_plantedTokenValue01", **env}
    if report is not None:
        variables["STANDIN_NCU_REPORT"] = str(report)
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}
    container = {
        "name": "vllm",
        "image": image,
        "command": list(command),
        "env": [
            {"name": name, "value": value}
            if isinstance(value, str)
            else {"name": name, "valueFrom": value}
            for name, value in variables.items()
        ],
        "ports": [{"containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 20},
    }
    template = {
        "metadata": {"labels": {"app": "engine"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 2},
    }
    selector = {"app": "engine"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": template,
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", "namespace": namespace},
        "spec": {"selector": selector, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    return [deployment, service]


def documents(objects: list[dict[str, Any]]) -> str:
    """Objects as kubectl takes them."""
    return "\n---\n".join(json.dumps(item) for item in objects)


def a_capture_settings() -> CaptureSettings:
    """Settings of a run that needs none in particular."""
    return CaptureSettings(
        experiment="x",
        run="0",
        context=None,
        namespace="prod",
        workload="deploy/engine",
        sister="s",
        sister_kind="Job",
        container="vllm",
        port=8000,
        health="/health",
        ncu="ncu",
        output="b",
        traffic=Traffic(),
        limits=Limits(),
    )
