"""The stand-ins inside the cluster: an engine behind a Service, and a copy under the profiler."""

from __future__ import annotations

import json
import ssl
import urllib.request

import pytest

from tests.cluster.fixture import Cluster

pytestmark = pytest.mark.cluster

PROXY = "/api/v1/namespaces/{namespace}/services/front:80/proxy/v1/completions"


def engine_container(*arguments: str) -> dict[str, object]:
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}
    return {
        "name": "vllm",
        "image": "example.com/vllm-openai:v0.32.0",
        "args": ["tiny", "--port", "8000", *arguments],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": probe,
        "livenessProbe": probe,
    }


def production(namespace: str) -> str:
    template = {
        "metadata": {"labels": {"app": "engine"}},
        "spec": {"containers": [engine_container()], "terminationGracePeriodSeconds": 2},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "engine"}},
            "template": template,
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", "namespace": namespace},
        "spec": {"selector": {"app": "engine"}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    return f"{json.dumps(deployment)}\n---\n{json.dumps(service)}"


def complete(cluster: Cluster, namespace: str) -> int:
    """One request through the Service; gives the HTTP code."""
    body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
    request = urllib.request.Request(cluster.url + PROXY.format(namespace=namespace), body)
    request.add_header("Authorization", "Bearer admin")
    request.add_header("Content-Type", "application/json")
    context = ssl.create_default_context(cafile=str(cluster.certificate))
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return int(answer.status)


def test_a_service_reaches_ready_replicas(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=production(namespace))
    status = ("-n", namespace, "rollout", "status", "deployment/engine", "--timeout=120s")
    cluster.kubectl(*status)
    assert complete(cluster, namespace) == 200
    slices = ("-n", namespace, "get", "endpointslices", "-o", "json")

    def behind() -> bool:
        listed = json.loads(cluster.kubectl(*slices).stdout)["items"]
        return sum(len(s["endpoints"]) for s in listed) == 2

    cluster.until(behind)
    title = ("-n", namespace, "exec", "deployment/engine", "--", "ps", "-eo", "args")
    told = cluster.kubectl(*title).stdout.decode().splitlines()
    assert "VLLM::EngineCore" in told


def test_an_engine_runs_under_a_profiler_that_an_image_volume_brought(
    cluster: Cluster, namespace: str
) -> None:
    ncu = "/tools/opt/nvidia/nsight-compute/2026.2.1/ncu"
    container = engine_container() | {
        "command": [ncu, "--profile-from-start", "off", "-k", "regex:rms_norm", "-c", "2"],
        "args": [
            *("-f", "-o", "/results/report_%p", "vllm", "serve", "tiny", "--port", "8000"),
            "--profiler-config.profiler=cuda",
        ],
        "volumeMounts": [
            {"name": "tools", "mountPath": "/tools"},
            {"name": "results", "mountPath": "/results"},
        ],
    }
    keeper = {
        "name": "keeper",
        "image": "plain",
        "command": ["sleep", "infinity"],
        "restartPolicy": "Always",
        "volumeMounts": [{"name": "results", "mountPath": "/results"}],
    }
    del container["livenessProbe"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sister"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "initContainers": [keeper],
            "containers": [container],
            "volumes": [
                {"name": "tools", "image": {"reference": "example.com/ncu:2026.2.1"}},
                {"name": "results", "emptyDir": {}},
            ],
        },
    }
    here = ("-n", namespace)
    cluster.kubectl(*here, "apply", "-f", "-", stdin=json.dumps(pod))
    cluster.kubectl(*here, "wait", "--for=condition=Ready", "pod/sister", "--timeout=120s")
    post = (
        "import urllib.request as u; kind = {{'Content-Type': 'application/json'}};"
        "u.urlopen(u.Request('http://127.0.0.1:8000{}', b'{{}}', kind)).read()"
    )
    for path in ("/start_profile", "/v1/completions", "/stop_profile"):
        script = post.format(path)
        cluster.kubectl(
            *here, "exec", "sister", "-c", "vllm", "--", "/usr/bin/env", "python3", "-c", script
        )
    stop = "kill -TERM 1"
    cluster.kubectl(*here, "exec", "sister", "-c", "vllm", "--", "sh", "-c", stop)
    logs = (*here, "logs", "sister", "-c", "vllm")
    cluster.until(lambda: b"==PROF== Report: /results/report_" in cluster.kubectl(*logs).stdout)
    text = cluster.kubectl(*logs).stdout.decode()
    assert text.count("==PROF== Profiling") == 2
