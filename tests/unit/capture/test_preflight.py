"""Each finding from the fact that causes it, and the one answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workloads import (
    SERVE,
    container,
    deployment,
    labelled_node,
    namespace,
    node,
    running,
    taken,
)

from solscope.capture import preflight
from solscope.model.finding import Finding, Severity
from solscope.model.plan import Strategy
from solscope.model.preflight import Answer, Preflight

OPEN = {"params": "RmProfilingAdminOnly: 0"}
RESTRICTED = {"params": "RmProfilingAdminOnly: 1", "status": "CapEff:\t00000000a80425fb"}


def examine(
    *objects: dict[str, Any], texts: dict[str, str] | None = None, **options: Any
) -> Preflight:
    return preflight.examine(taken(*objects, texts=texts, **options))


def finding(answer: Preflight, code: str) -> Finding:
    return next(f for f in answer.findings if f.code == code)


def codes(answer: Preflight) -> set[str]:
    return {f.code for f in answer.findings}


def with_env(**env: str) -> dict[str, Any]:
    return deployment(container(env=[{"name": k, "value": v} for k, v in env.items()]))


def on(labels: dict[str, str]) -> tuple[dict[str, Any], ...]:
    made = deployment()
    return made, running(made), labelled_node(labels)


# -- the answer --------------------------------------------------------------------------


def test_one_gpu_and_open_counters_is_launch() -> None:
    made = deployment()
    answer = examine(made, running(made), node(), texts=OPEN)
    assert (answer.answer, answer.strategy) == (Answer.POSSIBLE, Strategy.LAUNCH)
    assert "counters" not in answer.line
    assert answer.exit_code == 0


def test_unknown_counters_are_a_condition_not_a_refusal() -> None:
    answer = examine(deployment())
    assert answer.exit_code == 0
    assert "provided that counters may be read" in answer.line


def test_unknown_counters_in_a_strict_namespace_are_the_question() -> None:
    answer = examine(deployment(), namespace("restricted"))
    assert (answer.answer, answer.exit_code) == (Answer.UNDETERMINED, 1)
    assert "RmProfilingAdminOnly" in answer.line


def test_several_ranks_go_to_the_harness() -> None:
    gpus = {"limits": {"nvidia.com/gpu": "4"}}
    made = deployment(container(command=[*SERVE, "-tp", "4"], resources=gpus))
    answer = examine(made)
    assert answer.strategy is Strategy.HARNESS
    assert "nccl" in finding(answer, "collective-under-serialised-replay").remedy


@pytest.mark.parametrize("model", ["mistralai/Mixtral-8x7B", "Qwen/Qwen3-30B-A3B", "x/gpt-oss-20b"])
def test_a_mixture_of_experts_goes_to_the_harness(model: str) -> None:
    answer = examine(deployment(container(command=["vllm", "serve", model])))
    assert answer.strategy is Strategy.HARNESS
    assert model in answer.line


def test_a_distilled_dense_model_is_no_mixture_of_experts() -> None:
    model = "deepseek-ai/DeepSeek-R1-Distill-Llama-8B"
    answer = examine(deployment(container(command=["vllm", "serve", model])))
    assert answer.strategy is Strategy.LAUNCH


def test_two_gpu_containers_are_asked_about_by_name() -> None:
    answer = examine(deployment(container(), container(name="draft")))
    assert answer.answer is Answer.UNDETERMINED
    assert "server, draft" in answer.line


def test_the_named_container_settles_it() -> None:
    answer = examine(deployment(container(), container(name="draft")), container="draft")
    assert answer.snapshot.container == "draft"
    assert answer.exit_code == 0


def test_an_unknown_command_is_the_question() -> None:
    made = deployment(container(command=[], image="registry.example/own:1"))
    assert "what starts the server" in examine(made).line


def test_preload_stays_closed_without_an_endpoint_and_unverified_with_one() -> None:
    line = "   1: 0100007F:C000 00000000:0000 0A 00000000:00000000"
    without, having = examine(deployment()), examine(deployment(), texts={"endpoint": line})
    verdicts = [next(s for s in a.strategies if s.strategy == "preload") for a in (without, having)]
    assert [v.is_open for v in verdicts] == [False, True]
    assert "unverified" in verdicts[1].reason


# -- counters ----------------------------------------------------------------------------


def test_restricted_counters_without_policy_need_the_capability() -> None:
    answer = examine(deployment(), namespace(), texts=RESTRICTED)
    assert "CAP_SYS_ADMIN" in finding(answer, "counter-permission").remedy
    assert "needs CAP_SYS_ADMIN" in answer.line


def test_restricted_counters_under_baseline_refuse() -> None:
    answer = examine(deployment(), namespace("baseline"), texts=RESTRICTED)
    assert (answer.answer, answer.strategy) == (Answer.REFUSED, Strategy.NONE)
    assert "CAP_SYS_ADMIN" not in finding(answer, "counter-permission").remedy


def test_a_container_with_the_capability_may_read() -> None:
    texts = {**RESTRICTED, "status": "CapEff:\t000001ffffffffff"}
    assert "counters-by-capability" in codes(examine(deployment(), texts=texts))


def test_the_node_that_the_pod_runs_on_is_the_one_named() -> None:
    made = deployment()
    objects = (made, running(made, node="gpu-b"), node("gpu-a"), node("gpu-b"))
    answer = examine(*objects, texts=RESTRICTED)
    assert finding(answer, "counter-permission").where == "node gpu-b"


# -- injection ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/var/lib/zymtrace/profiler/lib.so", "zymtrace"),
        ("/opt/parca/libparcagpucupti.so", "Parca"),
        ("/opt/nsight-systems/libToolsInjection64.so", "Nsight Systems"),
        ("/opt/a/lib.so", "another tool"),
    ],
)
def test_the_owner_of_the_injection_slot_is_named(path: str, owner: str) -> None:
    answer = examine(with_env(CUDA_INJECTION64_PATH=path))
    assert owner in finding(answer, "injection-slot-taken").fact
    assert "unset" in answer.line


def test_a_variable_that_only_the_live_pod_has_came_from_outside() -> None:
    made = deployment()
    pod = running(made)
    injected = {"name": "CUDA_INJECTION64_PATH", "value": "/z/libzymtrace.so"}
    pod["spec"]["containers"] = [container(env=[injected])]
    remedy = finding(examine(made, pod, node()), "injection-slot-taken").remedy
    assert "admission webhook" in remedy


def test_the_torch_profiler_is_a_second_subscriber() -> None:
    answer = examine(with_env(VLLM_TORCH_PROFILER_DIR="/traces"))
    assert {"second-cupti-subscriber", "cudaProfilerStart-never-called"} <= codes(answer)


def test_stubs_on_the_library_path_are_found() -> None:
    answer = examine(with_env(LD_LIBRARY_PATH="/usr/local/cuda/lib64:/usr/local/cuda/lib64/stubs"))
    assert "stub-libcuda-or-no-driver" in codes(answer)


# -- versions ----------------------------------------------------------------------------


def image_on(image: str, labels: dict[str, str]) -> Preflight:
    made = deployment(container(image=image))
    return examine(made, running(made), labelled_node(labels))


def test_an_older_generation_under_a_newer_driver_is_loud_on_blackwell_only() -> None:
    gb300 = image_on("vllm/vllm-openai:v0.22.0-cu129", {"nvidia.com/gpu.product": "NVIDIA-GB300"})
    h100 = image_on("vllm/vllm-openai:v0.22.0-cu129", {})
    assert finding(gb300, "cuda-version-skew").severity is Severity.WARNING
    assert finding(h100, "cuda-version-skew").severity is Severity.INFO
    assert "12.9" in finding(gb300, "cuda-version-skew").fact
    assert "13.0" in finding(gb300, "cuda-version-skew").fact


def test_an_image_newer_than_the_driver_refuses() -> None:
    labels = {"nvidia.com/cuda.runtime-version.full": "12.4"}
    answer = image_on("vllm/vllm-openai:v0.28.0-cu130", labels)
    assert finding(answer, "driver-too-old-for-image").blocks


def test_a_version_from_a_table_never_refuses() -> None:
    labels = {"nvidia.com/cuda.runtime-version.full": "12.4"}
    answer = image_on("vllm/vllm-openai:v0.28.0", labels)
    assert not finding(answer, "driver-too-old-for-image").blocks


def test_the_same_generation_fits() -> None:
    assert "cuda-versions-fit" in codes(image_on("vllm/vllm-openai:v0.28.0", {}))


def test_the_image_asked_inside_outranks_its_tag() -> None:
    made = deployment(container(image="vllm/vllm-openai:v0.28.0"))
    answer = examine(made, running(made), node(), texts={"environ": "CUDA_VERSION=12.8.1"})
    assert "12.8.1" in finding(answer, "cuda-version-skew").fact


def test_an_ncu_that_does_not_know_the_chip_is_found() -> None:
    made = deployment()
    labels = {"nvidia.com/gpu.product": "NVIDIA-B200"}
    texts = {"which": "/usr/bin/sh\n/usr/local/cuda/bin/ncu", "ncu_version": "NVIDIA (R) Nsight "
             "Compute Command Line Profiler\nVersion 2024.3.0.0"}  # fmt: skip
    answer = examine(made, running(made), labelled_node(labels), texts=texts)
    assert "2025.1" in finding(answer, "chip-not-in-this-ncu").remedy


# -- sharing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"},
         "gpu-time-sliced"),
        ({"nvidia.com/gpu.replicas": "2"}, "gpu-time-sliced"),
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED"}, "gpu-time-sliced"),
        ({"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "4"},
         "gpu-shared-by-mps"),
    ],
)  # fmt: skip
def test_a_shared_gpu_refuses(labels: dict[str, str], code: str) -> None:
    assert finding(examine(*on(labels)), code).blocks


def test_a_mig_slice_refuses() -> None:
    made = deployment(container(resources={"limits": {"nvidia.com/mig-3g.20gb": 1}}))
    found = finding(examine(made), "mig-slice")
    assert found.blocks
    assert "scaled to the slice" in found.fact


@pytest.mark.parametrize("resource", ["amd.com/gpu", "gpu.intel.com/xe", "google.com/tpu"])
def test_another_makers_accelerator_refuses(resource: str) -> None:
    answer = examine(deployment(container(resources={"limits": {resource: "1"}})))
    assert finding(answer, "not-an-nvidia-gpu").blocks


def test_a_sandbox_refuses() -> None:
    assert finding(examine(deployment(runtimeClassName="gvisor")), "sandboxed-runtime").blocks


def test_a_claim_by_name_refuses_and_a_template_does_not() -> None:
    held = [{"name": "g", "resourceClaimName": "c"}]
    made = [{"name": "g", "resourceClaimTemplateName": "t"}]
    bare = container(resources={})
    assert finding(examine(deployment(bare, resourceClaims=held)), "gpu-by-held-claim").blocks
    assert examine(deployment(bare, resourceClaims=made)).exit_code == 0


def test_a_container_without_devices_has_no_gpu() -> None:
    answer = examine(deployment(container(resources={})), texts={"which": "/bin/sh"})
    assert "/dev/nvidia" in finding(answer, "no-gpu-in-container").fact


# -- serving -----------------------------------------------------------------------------


def probed(**probe: int) -> dict[str, Any]:
    return deployment(container(livenessProbe={"httpGet": {"path": "/health"}, **probe}))


def test_the_liveness_budget_is_period_times_threshold() -> None:
    answer = examine(probed(periodSeconds=5, failureThreshold=3), node())
    assert "about 15 s" in finding(answer, "liveness-kills-profiled-engine").fact


def test_a_patient_liveness_probe_is_no_warning() -> None:
    made = probed(periodSeconds=60, failureThreshold=10)
    found = finding(examine(made, running(made), node()), "liveness-kills-profiled-engine")
    assert found.severity is Severity.INFO  # 600 s against 5 x 79 GB at 20 GB/s, about 20 s


def test_kubernetes_defaults_are_filled_in() -> None:
    found = finding(examine(probed()), "liveness-kills-profiled-engine")
    assert "about 30 s" in found.fact  # 10 s x 3


def quota(hard: str, used: str | None) -> dict[str, Any]:
    status = {"hard": {"requests.nvidia.com/gpu": hard}}
    if used is not None:
        status["used"] = {"requests.nvidia.com/gpu": used}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "serving"},
        "spec": {"hard": {"requests.nvidia.com/gpu": hard}},
        "status": status,
    }


@pytest.mark.parametrize(
    ("hard", "used", "blocks"),
    [("4", "4", True), ("4", "3", False), ("0", None, True), ("4", None, False)],
)
def test_quota_refuses_where_the_sister_does_not_fit(
    hard: str, used: str | None, blocks: bool
) -> None:
    assert finding(examine(deployment(), quota(hard, used)), "gpu-quota").blocks is blocks


def test_an_autoscaler_of_this_workload_is_named_and_anothers_is_not() -> None:
    def scaler(target: str) -> dict[str, Any]:
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h", "namespace": "serving"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": target}},
        }

    assert "autoscaled" in codes(examine(deployment(), scaler("chat")))
    assert "autoscaled" not in codes(examine(deployment(), scaler("other")))


def test_a_priority_class_must_not_be_copied() -> None:
    answer = examine(deployment(priorityClassName="prod-high"))
    assert "prod-high" in finding(answer, "priority-class").fact


def event(reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "serving"},
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": "Pod", "name": "chat-1"},
    }


def test_a_pull_in_progress_is_no_failure() -> None:
    found = finding(examine(deployment(), event("Pulling", "Pulling image x")),
                    "image-pull-in-progress")  # fmt: skip
    assert found.severity is Severity.INFO


# -- memory ------------------------------------------------------------------------------


def test_a_full_device_is_said_with_its_number() -> None:
    made = deployment(container(command=[*SERVE, "--gpu-memory-utilization", "0.92"]))
    assert "0.92" in finding(examine(made), "device-memory-too-full").fact


def test_a_device_with_room_is_no_finding() -> None:
    made = deployment(container(command=[*SERVE, "--gpu-memory-utilization", "0.5"]))
    assert "device-memory-too-full" not in codes(examine(made))


def test_host_memory_below_the_backup_is_found() -> None:
    limits = {"nvidia.com/gpu": "1", "memory": "32Gi"}
    made = deployment(container(resources={"limits": limits}))
    found = finding(examine(made, running(made), node()), "host-memory-for-save-restore")
    # 0.92 of 81,559 MiB is 79 GB; 32 GiB is 34 GB.
    assert "79 GB" in found.fact
    assert "34 GB" in found.fact


# -- security, groups, secrets -----------------------------------------------------------


def test_a_read_only_root_without_tmp_stops_ncu() -> None:
    read_only = {"readOnlyRootFilesystem": True}
    bare = examine(deployment(container(securityContext=read_only)))
    mount = [{"mountPath": "/tmp", "name": "t"}]
    mounted = examine(deployment(container(securityContext=read_only, volumeMounts=mount)))
    assert "emptyDir" in finding(bare, "tmpdir-not-writable").remedy
    assert "tmpdir-not-writable" not in codes(mounted)


def test_host_network_refuses() -> None:
    assert examine(deployment(hostNetwork=True)).answer is Answer.REFUSED


def test_secrets_are_named_and_never_shown() -> None:
    made = deployment(
        container(
            command=[*SERVE, "--api-key", "sk-verysecret"],
            env=[{"name": "HF_TOKEN", "value": "hf_verysecret"}],
        )
    )
    answer = examine(made)
    evidence = " ".join(finding(answer, "secret-in-plain-text").evidence)
    assert "HF_TOKEN" in evidence
    assert "--api-key" in evidence
    shown = repr(answer.findings) + repr(answer.snapshot)
    assert "verysecret" not in shown


def test_more_ranks_than_gpus_in_the_pod_is_multi_node() -> None:
    answer = examine(deployment(container(command=[*SERVE, "-tp", "8"])))
    assert finding(answer, "multi-node").blocks


def test_a_ray_executor_hides_the_workers() -> None:
    made = deployment(container(command=[*SERVE, "--distributed-executor-backend", "ray"]))
    assert "raylet" in finding(examine(made), "ray-executor").fact


def test_a_forked_worker_start_is_found() -> None:
    found = finding(examine(with_env(VLLM_WORKER_MULTIPROC_METHOD="fork")), "use-spawn")
    assert found.severity is Severity.WARNING


def test_every_finding_says_where_what_and_what_to_do() -> None:
    made = probed(periodSeconds=1)
    answer = examine(made, running(made), node(), quota("4", "1"), namespace("baseline"))
    assert len(answer.findings) > 8
    for item in answer.findings:
        assert item.where
        assert item.fact
        assert item.remedy
        assert item.evidence


# -- storage -----------------------------------------------------------------------------


def claimed(mode: str) -> Preflight:
    made = deployment(volumes=[{"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}])
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "weights", "namespace": "serving"},
        "spec": {"accessModes": [mode]},
    }
    return examine(made, claim)


def test_a_claim_of_one_pod_refuses_and_one_of_one_node_is_said() -> None:
    assert finding(claimed("ReadWriteOncePod"), "volume-of-one-pod").blocks
    assert not finding(claimed("ReadWriteOnce"), "volume-of-one-node").blocks
    assert not any(code.startswith("volume-") for code in codes(claimed("ReadWriteMany")))


def test_volumes_of_an_ordinal_refuse() -> None:
    made = deployment()
    made["kind"] = "StatefulSet"
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "weights"}}]
    assert finding(examine(made), "volume-of-an-ordinal").blocks


def test_a_dynamo_worker_refuses_in_a_plain_deployment_too() -> None:
    command = ["python3", "-m", "dynamo.vllm", "--model", "m"]
    assert finding(examine(deployment(container(command=command))), "registers-itself").blocks


def test_a_script_that_joins_ray_refuses() -> None:
    script = "ray start --address $HEAD; vllm serve m"
    made = deployment(container(command=["bash", "-c", script]))
    assert finding(examine(made), "ray-executor").blocks


def test_the_engines_processes_are_shown_as_evidence() -> None:
    texts = {"processes": "1 (vllm) S 0 1\n90 (VLLM::EngineCor) S 1 1"}
    found = finding(examine(deployment(), texts=texts), "kernels-in-child-process")
    assert found.evidence == ("running: VLLM::EngineCor (pid 90)",)
