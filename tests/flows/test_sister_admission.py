"""What webhooks make of the sister's pod is seen in the rehearsal, and judged before it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.flows.test_sister_live import SERVICE, StubCluster, run
from tests.sisters import a_container, a_deployment, an_object

from solscope.cluster.port import Refused
from solscope.flows.world import Outcome
from solscope.model.finding import Severity
from solscope.model.sister import Sister

Pod = dict[str, Any]
Webhook = Callable[[Pod], None]


def server_of(pod: Pod) -> dict[str, Any]:
    server: dict[str, Any] = pod["spec"]["containers"][0]
    return server


def label(**labels: str) -> Webhook:
    return lambda pod: pod["metadata"]["labels"].update(labels)


def put(**fields: Any) -> Webhook:
    return lambda pod: pod["spec"].update(fields)


def add_container(group: str, container: dict[str, Any]) -> Webhook:
    return lambda pod: pod["spec"].setdefault(group, []).append(container)


def add_env(name: str, value: str) -> Webhook:
    return lambda pod: server_of(pod).setdefault("env", []).append({"name": name, "value": value})


def change_server(**fields: Any) -> Webhook:
    return lambda pod: server_of(pod).update(fields)


def rehearsed(folder: Path, webhook: Webhook, *objects: Pod, **more: Any) -> Outcome:
    cluster = StubCluster([a_deployment(), *objects])
    cluster.webhook = webhook
    outcome = run(folder, cluster, apply=True, **more)
    assert ("create", "Job") not in cluster.calls
    return outcome


def codes(outcome: Outcome, severity: Severity) -> list[str]:
    assert isinstance(outcome.value, Sister)
    return [
        item.code
        for item in outcome.value.findings
        if item.severity is severity and "admission" in item.code
    ]


# -- labels: the isolation is proven again ---------------------------------------------------------


def test_a_label_by_which_a_service_picks_the_pod_refuses_it(tmp_path: Path) -> None:
    outcome = rehearsed(tmp_path, label(app="chat"), SERVICE, yes=True)
    assert outcome.exit_code == 1
    # The Service sends it requests, and the Deployment's selector picks it, too.
    assert codes(outcome, Severity.BLOCKS) == ["sister-admission-reached"] * 2
    assert (
        "Service/chat: the cluster's admission labels the pod app=chat, and spec.selector "
        "(app=chat) picks it by that: traffic" in outcome.text
    )
    assert "+ metadata.labels[app]: app=chat" in outcome.text


def test_every_rule_that_the_label_meets_is_named(tmp_path: Path) -> None:
    monitor = an_object("PodMonitor", "scrape", {"selector": {"matchLabels": {"team": "llm"}}})
    outcome = rehearsed(tmp_path, label(app="chat", team="llm"), SERVICE, monitor)
    assert codes(outcome, Severity.BLOCKS) == ["sister-admission-reached"] * 3


def test_what_was_accepted_by_name_stays_so_where_it_is_no_traffic(tmp_path: Path) -> None:
    budget = an_object(
        "PodDisruptionBudget", "team", {"selector": {"matchLabels": {"team": "llm"}}}
    )
    refused = rehearsed(tmp_path, label(team="llm"), budget)
    assert codes(refused, Severity.BLOCKS) == ["sister-admission-reached"]
    allowed = rehearsed(tmp_path, label(team="llm"), budget, accept=("PodDisruptionBudget/team",))
    assert allowed.exit_code == 0


def test_a_label_that_nothing_picks_is_told_and_stops_nothing(tmp_path: Path) -> None:
    outcome = rehearsed(tmp_path, label(cost_centre="7"), SERVICE)
    assert outcome.exit_code == 0
    assert "sister -> pod as the cluster would admit it, 1 change\n" in outcome.text
    assert "+ metadata.labels[cost_centre]: cost_centre=7" in outcome.text
    assert codes(outcome, Severity.INFO) == ["sister-admission"]
    assert "rehearsed: the cluster would take it" in outcome.text


@pytest.mark.parametrize("key", ["experiment", "solscope-sister"])
def test_the_label_by_which_the_sister_is_found_again_must_stay(tmp_path: Path, key: str) -> None:
    changed = rehearsed(tmp_path, label(**{key: "other"}), SERVICE)
    assert codes(changed, Severity.BLOCKS) == ["sister-admission-label"]
    gone = rehearsed(tmp_path, lambda pod: pod["metadata"]["labels"].pop(key), SERVICE)
    assert codes(gone, Severity.BLOCKS) == ["sister-admission-label"]


# -- the rest of the pod ---------------------------------------------------------------------------


def test_a_mesh_s_companion_is_named_with_the_label_that_keeps_it_out(tmp_path: Path) -> None:
    proxy = {"name": "istio-proxy", "image": "docker.io/istio/proxyv2:1.30.0"}
    outcome = rehearsed(tmp_path, add_container("initContainers", proxy))
    assert outcome.exit_code == 0
    assert codes(outcome, Severity.WARNING) == ["sister-admission-container"]
    assert "--label sidecar.istio.io/inject=false keeps it out" in outcome.text


def test_an_injected_library_is_refused_with_the_label_that_keeps_it_out(tmp_path: Path) -> None:
    path = "/opt/datadog-packages/datadog-apm-inject/stable/inject/launcher.preload.so"
    outcome = rehearsed(tmp_path, add_env("LD_PRELOAD", path))
    assert outcome.exit_code == 1
    assert "next: --label admission.datadoghq.com/enabled=false keeps it out" in outcome.text


def test_a_companion_of_nobody_we_know_is_named_too(tmp_path: Path) -> None:
    agent = {"name": "agent", "image": "example.com/agent:2"}
    outcome = rehearsed(tmp_path, add_container("containers", agent))
    assert "admission puts a container into the pod: agent, image example.com/agent:2" in (
        outcome.text
    )


@pytest.mark.parametrize(
    ("webhook", "code"),
    [
        (change_server(command=["/agent/run", "vllm"]), "sister-admission-command"),
        (put(hostNetwork=True), "sister-host-network"),
        (
            change_server(livenessProbe={"tcpSocket": {"port": 8000}}),
            "sister-admission-probe",
        ),
        (lambda pod: pod["spec"]["initContainers"].clear(), "sister-admission-container"),
        (
            lambda pod: server_of(pod)["resources"]["limits"].update({"nvidia.com/gpu": "8"}),
            "sister-admission-gpus",
        ),
        (add_env("LD_PRELOAD", "/opt/zymtrace/libinject.so"), "sister-admission-variable"),
        (add_env("VLLM_TORCH_PROFILER_DIR", "/traces"), "sister-admission-variable"),
        (add_env("VLLM_API_KEY", "of-somebody"), "sister-admission-variable"),
    ],
)
def test_what_would_spoil_the_capture_refuses_it(
    tmp_path: Path, webhook: Webhook, code: str
) -> None:
    outcome = rehearsed(tmp_path, webhook, yes=True)
    assert outcome.exit_code == 1
    assert set(blocks(outcome)) == {code}
    assert "of-somebody" not in outcome.text


def blocks(outcome: Outcome) -> list[str]:
    assert isinstance(outcome.value, Sister)
    return [item.code for item in outcome.value.findings if item.blocks]


@pytest.mark.parametrize(
    ("webhook", "code"),
    [
        (put(priority=1000, priorityClassName="high"), "sister-admission-priority"),
        (
            lambda pod: pod["metadata"].update(finalizers=["example.com/audit"]),
            "sister-admission-finalizer",
        ),
        (
            add_env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
            "sister-admission-variable",
        ),
    ],
)
def test_what_should_be_known_is_a_warning(tmp_path: Path, webhook: Webhook, code: str) -> None:
    outcome = rehearsed(tmp_path, webhook)
    assert (outcome.exit_code, codes(outcome, Severity.WARNING)) == (0, [code])


def test_a_variable_that_ncu_s_process_does_not_get_stops_nothing(tmp_path: Path) -> None:
    outcome = rehearsed(tmp_path, add_env("CUDA_INJECTION64_PATH", "/opt/zymtrace/lib.so"))
    assert outcome.exit_code == 0
    assert "+ spec.containers[server].env[CUDA_INJECTION64_PATH]" in outcome.text
    assert "/opt/zymtrace/lib.so" not in outcome.text


# -- what every cluster does -----------------------------------------------------------------------


def defaults(pod: Pod) -> None:
    """What a server fills in without any webhook."""
    pod["metadata"].update(creationTimestamp="2026-01-01T00:00:00Z", uid="u", managedFields=[])
    pod["metadata"].setdefault("annotations", {})
    spec = pod["spec"]
    spec.update(
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        enableServiceLinks=True,
        priority=0,
        preemptionPolicy="PreemptLowerPriority",
        serviceAccount="default",
        serviceAccountName="default",
    )
    spec.setdefault("securityContext", {})
    token = {"name": "kube-api-access-abcde", "projected": {"sources": []}}
    spec.setdefault("volumes", []).append(token)
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container.update(
            imagePullPolicy="IfNotPresent",
            terminationMessagePath="/dev/termination-log",
            terminationMessagePolicy="File",
        )
        container.setdefault("volumeMounts", []).append(
            {
                "name": "kube-api-access-abcde",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }
        )
        resources = container.setdefault("resources", {})
        for name, amount in (resources.get("limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, amount)
        if (resources.get("limits") or {}).get("cpu") == "0.5":
            resources["limits"]["cpu"] = resources["requests"]["cpu"] = "500m"
        for entry in container.get("env") or ():
            if "fieldRef" in (entry.get("valueFrom") or {}):
                entry["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
            if entry.get("value") == "":
                del entry["value"]


def test_what_every_server_fills_in_is_no_change(tmp_path: Path) -> None:
    server = a_container(
        envFrom=[{"configMapRef": {"name": "settings"}}],
        resources={"limits": {"nvidia.com/gpu": 1, "cpu": "0.5"}},
        env=[
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "EMPTY", "value": ""},
        ],
    )
    cluster = StubCluster([a_deployment(server), SERVICE])
    cluster.webhook = defaults
    outcome = run(tmp_path, cluster, apply=True)
    assert isinstance(outcome.value, Sister)
    assert outcome.value.admitted == ()
    assert codes(outcome, Severity.INFO) == []
    assert "admit it" not in outcome.text


def test_an_empty_answer_of_annotations_is_none(tmp_path: Path) -> None:
    outcome = rehearsed(
        tmp_path, lambda pod: pod["metadata"].setdefault("annotations", {}).update(ranger="set cpu")
    )
    assert "+ metadata.annotations[ranger]: ranger\n" in outcome.text
    assert "set cpu" not in outcome.text


# -- a webhook that no dry run may ask -------------------------------------------------------------


def test_a_webhook_without_dry_run_leaves_the_sister_unrehearsed(tmp_path: Path) -> None:
    said = 'admission webhook "inject.example.com" does not support dry run'
    cluster = StubCluster([a_deployment(), SERVICE], refuse={"rehearse Pod": Refused(said)})
    outcome = run(tmp_path, cluster, apply=True)
    assert outcome.exit_code == 0
    assert "sister-unrehearsed" in outcome.text
    assert "rehearsed: the cluster would take it" not in outcome.text


# -- GPUs and processes of others ------------------------------------------------------------------


def test_a_webhook_that_shows_it_every_gpu_of_its_node_refuses_it(tmp_path: Path) -> None:
    # Injectors for RDMA do that.
    webhook = change_server(securityContext={"privileged": True})
    outcome = rehearsed(tmp_path, webhook, yes=True)
    assert outcome.exit_code == 1
    assert "it sees every GPU of its node" in outcome.text
    outcome = rehearsed(tmp_path, webhook, accept=("privileged",))
    assert outcome.exit_code == 0, outcome.text


def test_a_webhook_that_shows_it_the_processes_of_its_node_refuses_it(tmp_path: Path) -> None:
    outcome = rehearsed(tmp_path, put(hostPID=True), yes=True)
    assert outcome.exit_code == 1
    assert "the processes of its node" in outcome.text


# -- the Job around it -----------------------------------------------------------------------------


def job_rehearsed(folder: Path, **fields: Any) -> Outcome:
    cluster = StubCluster([a_deployment()])
    cluster.job_webhook = lambda job: job["spec"].update(fields)
    return run(folder, cluster, apply=True)


def test_a_job_that_a_queue_holds_back_is_said_before_anybody_waits(tmp_path: Path) -> None:
    outcome = job_rehearsed(tmp_path, suspend=True)
    assert codes(outcome, Severity.WARNING) == ["sister-admission-suspended"]
    assert "kueue.x-k8s.io/queue-name=QUEUE" in outcome.text
    assert outcome.exit_code == 0
    assert codes(job_rehearsed(tmp_path, suspend=False), Severity.WARNING) == []


@pytest.mark.parametrize(
    "fields", [{"activeDeadlineSeconds": None}, {"backoffLimit": 6}, {"parallelism": 2}]
)
def test_a_job_that_would_not_end_or_run_again_is_refused(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    outcome = job_rehearsed(tmp_path, **fields)
    assert codes(outcome, Severity.BLOCKS) == ["sister-admission-job"]
    assert outcome.exit_code == 1


def test_a_webhook_that_replaces_the_hook_of_its_end_is_told(tmp_path: Path) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "30"]}}}
    outcome = rehearsed(tmp_path, change_server(lifecycle=hook))
    assert "spec.containers[server].lifecycle" in outcome.text
    assert codes(outcome, Severity.INFO) == ["sister-admission"]
