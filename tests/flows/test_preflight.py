"""The journey of `preflight`: live through a cluster that refuses this and that, and by file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fakes.cluster import FakeCluster, unreachable
from tests.workloads import (
    NOW,
    SERVE,
    container,
    deployment,
    namespace,
    node,
    replica_set,
    running,
)

from solscope.cluster.port import ExecResult, Forbidden, NotFound, UnknownKind
from solscope.errors import ClusterError, UsageError
from solscope.flows import preflight
from solscope.flows.preflight import PreflightRequest
from solscope.flows.world import Outcome, World

WORLD = World(now=lambda: NOW)
ANSWERS = {
    "cmdline": "\x1e".join(
        ["/usr/bin/python3", "/usr/local/bin/vllm", *SERVE[1:], "--port", "8000", ""]
    ),
    "environ": "CUDA_VERSION=13.0.1\nCUDA_INJECTION64_PATH=/z/libzymtrace.so",
    "params": "RmProfilingAdminOnly: 0",
    "devices": "/dev/nvidia0\n/dev/nvidiactl",
    "smi": "NVIDIA H100 80GB HBM3, 580.95.05, 81559, 75000, Disabled, 9.0",
    "which": "/usr/bin/tar\n/usr/bin/sh",
    "processes": "1 (vllm) S 0 1 1 0\n90 (VLLM::EngineCor) S 1 1 1 0",
}


def output(texts: dict[str, str]) -> ExecResult:
    text = "".join(f"@@solscope:{name}\n{body}\n" for name, body in texts.items())
    return ExecResult(stdout=text.encode(), stderr="", exit_code=0)


def a_cluster(**options: Any) -> FakeCluster:
    made = options.pop("made", None) or deployment()
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", "namespace": "serving"},
        "spec": {"selector": {"app": "chat"}},
    }
    objects = [made, replica_set(made), running(made), node(), namespace(), service]
    return FakeCluster(objects, namespace="serving", **options)


def live(cluster: FakeCluster, target: str = "deploy/chat", **options: Any) -> Outcome:
    request = PreflightRequest(target=target, namespace="serving", **options)
    return preflight.run(request, WORLD, connect=lambda *_: cluster)


def by_file(tmp_path: Path, *objects: dict[str, Any], text: str = "", **options: Any) -> Outcome:
    path = tmp_path / "m.yaml"
    path.write_bytes((text or yaml.safe_dump_all(objects)).encode())
    return preflight.run(PreflightRequest(filename=(str(path),), **options), WORLD)


def codes(outcome: Outcome) -> set[str]:
    return {finding.code for finding in outcome.value.findings}


# -- live --------------------------------------------------------------------------------


def test_a_live_deployment_is_answered_with_its_node() -> None:
    outcome = live(a_cluster())
    assert outcome.exit_code == 0
    assert "NVIDIA-H100-80GB-HBM3" in outcome.text
    assert "receives-traffic" in codes(outcome)


def test_nothing_is_ever_changed() -> None:
    cluster = a_cluster(outputs={"sh": output(ANSWERS)})
    live(cluster, exec=True)
    verbs = {call.split()[0] for call in cluster.calls if "pods/exec" not in call}
    assert verbs <= {"get", "list", "raw", "exec"}


def test_a_pod_leads_to_the_deployment_that_made_it() -> None:
    outcome = live(a_cluster(), "pod/chat-1")
    assert outcome.value.snapshot.reference == "Deployment/chat -n serving"
    assert [pod.name for pod in outcome.value.snapshot.pods] == ["chat-1"]


@pytest.mark.parametrize(
    ("denied", "unread"),
    [
        ("get nodes", "get nodes"),
        ("list services", "list services"),
        ("list events", "list events"),
        ("get namespaces", "get namespaces"),
        ("list pods", "list pods"),
        ("list pods (everywhere)", "list pods"),
        ("list horizontalpodautoscalers", "list horizontalpodautoscalers"),
        ("list resourcequotas", "list resourcequotas"),
        ("list networkpolicies", "list networkpolicies"),
        ("list configmaps", "list configmaps"),
    ],
)
def test_each_refused_right_is_named_and_nothing_crashes(denied: str, unread: str) -> None:
    outcome = live(a_cluster(denied=[denied]))
    assert outcome.exit_code == 0
    assert unread in outcome.text


def test_all_rights_but_the_target_refused_still_gives_an_answer() -> None:
    kinds = ("nodes", "services", "events", "namespaces", "pods", "pods (everywhere)",
             "horizontalpodautoscalers", "poddisruptionbudgets", "networkpolicies",
             "resourcequotas", "podmonitors", "servicemonitors", "scaledobjects",
             "inferencepools", "configmaps")  # fmt: skip
    denied = [f"{verb} {kind}" for kind in kinds for verb in ("get", "list")]
    outcome = live(a_cluster(denied=denied))
    assert outcome.value.line.startswith("launch")
    assert {"gpu-unknown", "services-unknown", "pod-security-unknown"} <= codes(outcome)


def test_kinds_that_are_not_installed_are_known_to_be_none() -> None:
    absent = ["podmonitors", "servicemonitors", "scaledobjects", "inferencepools"]
    outcome = live(a_cluster(absent=absent))
    assert "scaledobjects" not in outcome.text


def test_what_a_look_inside_could_not_tell_is_not_sent_inside_again() -> None:
    without = {name: text for name, text in ANSWERS.items() if name != "params"}
    looked = live(a_cluster(outputs={"sh": output(without)}), exec=True)
    (question,) = (q for q in looked.value.questions if q.startswith("counters"))
    assert question.startswith("counters on gpu-a: not to be seen from inside")
    (found,) = (f for f in looked.value.findings if f.code == "counter-permission-unknown")
    assert found.remedy.startswith("ask the node's owner")
    (question,) = (q for q in live(a_cluster()).value.questions if q.startswith("counters"))
    assert "preflight ... --exec" in question


def test_looking_inside_settles_what_the_objects_leave_open() -> None:
    outcome = live(a_cluster(outputs={"sh": output(ANSWERS)}), exec=True)
    assert {"counters-open", "cuda-versions-fit", "injection-slot-taken"} <= codes(outcome)
    assert "counter-permission-unknown" not in codes(outcome)
    assert outcome.value.snapshot.engine.form == "process"


def test_the_servers_version_is_asked_through_the_api_server() -> None:
    # The port comes from the process: the template does not state it.
    made = deployment(container(image="own/vllm:latest"))
    path = "/api/v1/namespaces/serving/pods/chat-1:8000/proxy/version"
    cluster = a_cluster(
        made=made, outputs={"sh": output(ANSWERS)}, bodies={path: b'{"version":"0.24.0"}'}
    )
    engine = live(cluster, exec=True).value.snapshot.engine
    assert (engine.version.value, engine.version.source) == ("0.24.0", "GET /version")


def test_an_image_without_a_shell_still_tells_its_command_line() -> None:
    cmdline = ExecResult(stdout=b"vllm\0serve\0org/other\0", stderr="", exit_code=0)
    outcome = live(a_cluster(outputs={"cat": cmdline}), exec=True)
    assert "no-shell-in-image" in codes(outcome)
    assert outcome.value.snapshot.engine.model == "org/other"


def test_a_script_of_several_lines_as_first_process_stays_one_word() -> None:
    words = ["sh", "-c", "sleep 1\nvllm serve org/third \\\n --max-num-seqs 3", ""]
    texts = {**ANSWERS, "cmdline": "\x1e".join(words)}
    engine = live(a_cluster(outputs={"sh": output(texts)}), exec=True).value.snapshot.engine
    assert (engine.model, engine.max_num_seqs) == ("org/third", 3)


def test_a_refused_exec_is_an_unknown_with_its_right() -> None:
    outcome = live(a_cluster(denied=["create pods/exec"]), exec=True)
    assert outcome.exit_code == 0
    assert "create pods/exec" in outcome.text


def test_a_secret_inside_the_container_is_never_shown() -> None:
    texts = {
        **ANSWERS,
        "environ": "VLLM_API_KEY=verysecret\nCUDA_VERSION=13.0",
        "cmdline": "\x1e".join(["vllm", "serve", "m", "--api-key", "verysecret"]),
    }
    for form in ("table", "json"):
        outcome = live(a_cluster(outputs={"sh": output(texts)}), exec=True, format=form)
        assert "verysecret" not in outcome.text
        assert "verysecret" not in repr(outcome.value)
        assert "secret-in-plain-text" in codes(outcome)


def test_a_pod_that_has_gone_is_said() -> None:
    with pytest.raises(NotFound, match="not found"):
        live(a_cluster(), "pod/gone")


def test_a_pod_that_goes_meanwhile_is_an_unknown_not_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = a_cluster(outputs={"sh": output(ANSWERS)})
    listed = cluster.list

    def gone(kind: str, **options: Any) -> tuple[Any, ...]:
        found = listed(kind, **options)
        if kind == "pods":
            cluster.objects = [obj for obj in cluster.objects if obj["kind"] != "Pod"]
        return found

    monkeypatch.setattr(cluster, "list", gone)
    outcome = live(cluster, exec=True)
    assert outcome.exit_code == 0
    assert "not found" in outcome.text


def test_what_the_server_says_of_its_memory_outranks_its_defaults() -> None:
    made = deployment(container(command=[*SERVE, "--port", "8000"]))
    proxy = "/api/v1/namespaces/serving/pods/chat-1:8000/proxy/"
    metrics = b'vllm:cache_config_info{block_size="16",gpu_memory_utilization="0.4"} 1.0'
    bodies = {f"{proxy}metrics": metrics}
    cluster = a_cluster(made=made, outputs={"sh": output(ANSWERS)}, bodies=bodies)
    fact = live(cluster, exec=True).value.snapshot.engine.memory_fraction
    assert (fact.value, fact.source) == (0.4, "GET /metrics, vllm:cache_config_info")


def test_an_unknown_kind_is_said() -> None:
    with pytest.raises(UnknownKind, match="no such kind"):
        live(a_cluster(absent=["lws", "leaderworkerset"]), "lws/x")


def test_a_target_that_may_not_be_read_is_an_error_with_its_right() -> None:
    with pytest.raises(Forbidden) as caught:
        live(a_cluster(denied=["get deployment"]))
    assert "deployment" in caught.value.right


def test_no_kubectl_is_an_error_with_the_next_step() -> None:
    with pytest.raises(ClusterError) as caught:
        preflight.run(PreflightRequest(target="deploy/x"), WORLD, connect=unreachable)
    assert caught.value.exit_code == 4


def test_no_target_and_no_file_is_asked_for() -> None:
    with pytest.raises(UsageError, match="nothing to look at"):
        preflight.run(PreflightRequest(), WORLD)


def test_a_leader_of_a_group_is_refused_by_its_owner() -> None:
    made = deployment()
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "big",
         "controller": True}
    ]  # fmt: skip
    outcome = live(a_cluster(made=made))
    assert outcome.exit_code == 1
    assert "pods-of-a-group" in codes(outcome)


def test_a_custom_resource_is_read_from_the_pod_that_its_controller_made() -> None:
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"predictor": {"model": {"runtime": "elsewhere"}}},
    }
    pod = running(deployment())
    pod["metadata"]["labels"]["serving.kserve.io/inferenceservice"] = "chat"
    cluster = FakeCluster([service, pod, node()], namespace="serving")
    outcome = live(cluster, "isvc/chat")
    assert outcome.value.snapshot.engine.model == "org/model-8b"
    assert outcome.exit_code == 0
    assert "deploy/NAME" in outcome.text


def test_a_custom_resource_without_pods_is_the_question() -> None:
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"predictor": {"model": {"runtime": "elsewhere"}}},
    }
    outcome = live(FakeCluster([service], namespace="serving"), "isvc/chat")
    assert outcome.value.line.startswith("undetermined")


def test_an_object_without_template_or_pods_says_to_name_a_pod() -> None:
    odd = {"kind": "Widget", "metadata": {"name": "w", "namespace": "serving"}, "spec": {}}
    with pytest.raises(UsageError, match="no pod template"):
        live(FakeCluster([odd], namespace="serving"), "widget/w")


def test_an_owner_that_may_not_be_read_is_noted() -> None:
    outcome = live(a_cluster(denied=["get replicasets"]), "pod/chat-1")
    assert outcome.exit_code == 0
    assert "owner ReplicaSet/chat-rs unknown: get replicasets" in outcome.text


def test_a_deployment_that_a_controller_made_is_its_own_answer() -> None:
    made = deployment()
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "chat",
         "controller": True}
    ]  # fmt: skip
    outcome = live(a_cluster(made=made))
    assert outcome.value.snapshot.owners == ("InferenceService/chat",)
    assert outcome.exit_code == 0


# -- by file -----------------------------------------------------------------------------


def test_a_manifest_needs_no_cluster(tmp_path: Path) -> None:
    outcome = by_file(tmp_path, deployment())
    assert outcome.exit_code == 0
    assert outcome.value.snapshot.context is None


def test_the_json_holds_answer_findings_and_measurement_context(tmp_path: Path) -> None:
    made = deployment(container(command=[*SERVE, "-tp", "1", "--kv-cache-dtype", "fp8"]))
    data = json.loads(by_file(tmp_path, made, format="json").text)
    assert (data["schema"], data["answer"], data["exit_code"]) == (
        "solscope.preflight/1",
        "possible",
        0,
    )
    assert data["measurement_context"]["engine"]["kv_cache_dtype"] == "fp8"
    assert data["measurement_context"]["node"] is None
    assert {"code", "severity", "where", "fact", "remedy", "evidence"} == set(data["findings"][0])


def test_several_workloads_are_each_answered(tmp_path: Path) -> None:
    other = deployment()
    other["metadata"] = {"name": "other", "namespace": "serving"}
    other["spec"]["template"]["spec"]["hostNetwork"] = True
    outcome = by_file(tmp_path, deployment(), other, format="json")
    answers = [item["answer"] for item in json.loads(outcome.text)["workloads"]]
    assert answers == ["possible", "refused"]
    assert outcome.exit_code == 1


def test_one_of_several_workloads_can_be_named(tmp_path: Path) -> None:
    other = deployment()
    other["metadata"] = {"name": "other", "namespace": "serving"}
    outcome = by_file(tmp_path, deployment(), other, target="deploy/other")
    assert outcome.value.snapshot.name == "other"


def test_a_target_that_the_file_lacks_is_answered_with_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        by_file(tmp_path, deployment(), target="deploy/nope")
    assert "Deployment/chat" in str(caught.value)


def test_a_file_without_its_option_is_told_from_a_workload(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a file"):
        by_file(tmp_path, deployment(), target="other/manifest.yaml")


def test_a_container_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        by_file(tmp_path, deployment(), container="nope")
    assert "server" in str(caught.value)


def test_two_gpu_containers_are_asked_about(tmp_path: Path) -> None:
    outcome = by_file(tmp_path, deployment(container(), container(name="draft")))
    assert outcome.exit_code == 1
    assert "--container" in outcome.text


def test_a_fault_in_yaml_is_shown_with_its_line(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n   labels: {}\n"
    with pytest.raises(UsageError) as caught:
        by_file(tmp_path, text=text)
    assert "m.yaml:5" in str(caught.value)
    assert "line 5 reads:    labels: {}" in str(caught.value)


def test_a_helm_template_is_told_from_a_typing_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="helm template"):
        by_file(tmp_path, text="kind: Pod\nmetadata: {{ .Values.x }}\nspec: {{- if }}\n")


@pytest.mark.parametrize("text", ["", "---\n", "- a\n- b\n", "a: 1\n", "just words\n"])
def test_what_is_no_kubernetes_object_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        by_file(tmp_path, text=text or "\n")


def test_a_file_that_is_not_there_or_no_text_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        preflight.run(PreflightRequest(filename=(str(tmp_path / "no"),)), WORLD)
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        preflight.run(PreflightRequest(filename=(str(tmp_path / "b"),)), WORLD)


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    script = "vllm serve org/m \\\n  --max-num-seqs 4\n"
    made = deployment(container(command=["sh", "-c", script]))
    unix = yaml.safe_dump(made, default_style="|")
    one = by_file(tmp_path, text=unix)
    two = by_file(tmp_path, text=unix.replace("\n", "\r\n"))
    assert one.text == two.text
    assert two.value.snapshot.engine.max_num_seqs == 4


def test_two_thousand_lines_take_less_than_a_second(tmp_path: Path) -> None:
    many = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"},
         "data": {f"k{m}": "v" for m in range(20)}}
        for n in range(100)
    ]  # fmt: skip
    text = yaml.safe_dump_all([*many, deployment()])
    assert text.count("\n") > 2000
    begun = time.perf_counter()
    by_file(tmp_path, text=text)
    assert time.perf_counter() - begun < 1.0


def test_a_config_file_out_of_a_configmap_is_read(tmp_path: Path) -> None:
    mount = [{"mountPath": "/etc/vllm", "name": "conf"}]
    command = [*SERVE, "--config", "/etc/vllm/server.yaml"]
    volumes = [{"name": "conf", "configMap": {"name": "conf"}}]
    made = deployment(container(command=command, volumeMounts=mount), volumes=volumes)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "conf"},
        "data": {"server.yaml": "max-num-seqs: 12\n"},
    }
    assert by_file(tmp_path, made, config).value.snapshot.engine.max_num_seqs == 12


def test_the_answer_stands_on_one_line(tmp_path: Path) -> None:
    outcome = by_file(tmp_path, deployment())
    assert f"\n  {outcome.value.line}\n" in outcome.text
