"""The sister's pod: what is kept, taken away, and brought, and why a copy is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.cluster import FakeCluster
from tests.sisters import (
    a_container,
    a_deployment,
    a_plan,
    a_sister,
    an_object,
    codes,
    pod_spec,
    server_of,
)

from solscope.capture.sister import creation, environment, naming, secrecy, tooling
from solscope.errors import UsageError
from solscope.model.plan import CostEstimate, Strategy
from solscope.model.sister import SisterKind, SisterOptions, ToolsSource

LISTENS = ("--host", "127.0.0.1", "--port")


def env_names(container: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in container.get("env", ())]


def literal(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


# -- kept ------------------------------------------------------------------------------------


def test_what_decides_the_kernels_is_kept() -> None:
    kept = {
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "runtimeClassName": "nvidia",
        "serviceAccountName": "models",
        "imagePullSecrets": [{"name": "pull"}],
        "securityContext": {"fsGroup": 100},
        "enableServiceLinks": False,
    }
    server = a_container(resources={"limits": {"nvidia.com/gpu": 4}, "requests": {"cpu": "8"}})
    sister = a_sister(a_deployment(server, **kept))
    spec = pod_spec(sister)
    assert {key: spec[key] for key in kept} == kept
    assert server_of(sister)["resources"] == server["resources"]
    assert server_of(sister)["image"] == server["image"]


def test_a_secret_by_reference_is_kept_as_the_reference() -> None:
    (entry,) = server_of(a_sister())["env"]
    assert entry["valueFrom"] == {"secretKeyRef": {"name": "hub", "key": "token"}}


# -- removed ---------------------------------------------------------------------------------


def test_the_sister_is_never_ready_so_that_no_service_sends_it_anything() -> None:
    made = a_sister()
    assert pod_spec(made)["readinessGates"] == [{"conditionType": "solscope/isolated"}]
    assert [c.path for c in made.changes if "readiness" in c.path] == ["spec.readinessGates"]


def test_a_queue_that_may_want_pods_ready_gets_them_and_this_is_said() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "gpus"}
    made = a_sister(options=SisterOptions(labels=labels))
    assert "readinessGates" not in pod_spec(made)
    assert "sister-may-be-ready" in [finding.code for finding in made.findings]
    assert "sister-may-be-ready" not in [finding.code for finding in a_sister().findings]


def test_what_belongs_to_the_target_alone_is_removed() -> None:
    spec = pod_spec(
        a_sister(
            a_deployment(
                priorityClassName="high",
                hostname="a",
                subdomain="b",
                hostPID=True,
                topologySpreadConstraints=[{"maxSkew": 1}],
                readinessGates=[{"conditionType": "x"}],
            )
        )
    )
    gone = {"priorityClassName", "hostname", "subdomain", "hostPID", "topologySpreadConstraints"}
    assert not gone & set(spec)
    assert {"conditionType": "x"} not in spec["readinessGates"]


def test_probes_hooks_and_ports_are_removed_from_every_container() -> None:
    helper = a_container(name="helper", resources=None, lifecycle={"preStop": {"sleep": {}}})
    sister = a_sister(a_deployment(a_container(), helper))
    spec = pod_spec(sister)
    for container in (*spec["containers"], *spec["initContainers"]):
        assert not {"livenessProbe", "ports"} & set(container)
        assert set(container.get("lifecycle", ())) <= {"preStop"}
        # Of the two hooks that they had, none is left; the server's own is the sister's.
        assert ("lifecycle" in container) is (container["name"] == "server")


def test_labels_are_new_only_and_annotations_are_gone() -> None:
    target = a_deployment()
    target["spec"]["template"]["metadata"]["annotations"] = {
        "prometheus.io/scrape": "true",
        "argocd.argoproj.io/instance": "x",
        "container.apparmor.security.beta.kubernetes.io/server": "unconfined",
    }
    template = a_sister(target).objects[-1]["spec"]["template"]["metadata"]
    assert sorted(template["labels"]) == ["experiment", "solscope-sister"]
    # Two of its own, so that no node autoscaler moves it.
    assert template["annotations"] == {
        "container.apparmor.security.beta.kubernetes.io/server": "unconfined",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }


def test_only_the_anti_affinity_against_the_target_itself_is_removed() -> None:
    def term(**labels: str) -> dict[str, Any]:
        return {"labelSelector": {"matchLabels": labels}, "topologyKey": "host"}

    key = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAntiAffinity": {key: [term(app="chat"), term(app="noisy")]}}
    spec = pod_spec(a_sister(a_deployment(affinity=affinity)))
    assert spec["affinity"]["podAntiAffinity"][key] == [term(app="noisy")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_INJECTION64_PATH", "/opt/x.so"),
        ("ZYMTRACE_TOKEN_PATH", "x"),
        ("NV_NSIGHT_INJECTION_PORT_BASE", "49152"),
        ("LD_PRELOAD", "/var/lib/zymtrace/lib.so"),
        ("VLLM_NIXL_SIDE_CHANNEL_PORT", "5600"),
        ("LMCACHE_CONTROLLER_URL", "tcp://x"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x"),
        ("RAY_ADDRESS", "x:6379"),
        ("VLLM_API_KEY", "x"),
    ],
)
def test_variables_that_inject_or_join_are_removed(name: str, value: str) -> None:
    server = server_of(a_sister(a_deployment(a_container(env=literal(**{name: value, "A": "1"})))))
    assert env_names(server) == ["A"]


def test_an_innocent_preload_and_network_choices_stay() -> None:
    values = {"LD_PRELOAD": "/lib/libjemalloc.so", "UCX_TLS": "tcp", "NCCL_DEBUG": "INFO"}
    server = server_of(a_sister(a_deployment(a_container(env=literal(**values)))))
    assert env_names(server) == list(values)


def test_variables_that_an_image_or_a_webhook_sets_are_unset_before_ncu_starts() -> None:
    command = server_of(a_sister(plan=a_plan(unset=("EXTRA",))))["command"]
    before = command[: command.index("/solscope/tools/nsight-compute/ncu")]
    assert before[0] == "env"
    assert set(before[2::2]) == {*environment.ALWAYS_UNSET, "EXTRA"}


def test_a_plain_secret_becomes_an_optional_reference_and_is_never_shown() -> None:
    sister = a_sister(a_deployment(a_container(env=literal(HF_TOKEN="hf_1234567890"))))
    (entry,) = server_of(sister)["env"]
    reference = entry["valueFrom"]["secretKeyRef"]
    assert reference == {"name": f"{sister.name}-env", "key": "HF_TOKEN", "optional": True}
    assert "hf_1234567890" not in repr(sister)
    assert "sister-secret-not-copied" in codes(sister)


def test_a_plain_key_on_the_command_line_is_removed_and_never_shown() -> None:
    command = ["vllm", "serve", "m", "--api-key", "sk-123", "--hf-token=hf_1234567890"]
    sister = a_sister(a_deployment(a_container(command=command)))
    assert server_of(sister)["args"] == ["vllm", "serve", "m", *LISTENS, "8000"]
    assert "sk-123" not in repr(sister)
    assert "hf_1234567890" not in repr(sister)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["serve", "m", "--api-key", "one", "two", "--seed", "8"], ["serve", "m", "--seed", "8"]),
        # Older releases take one key, and the model may come last.
        (["serve", "--api-key", "one", "m"], ["serve", "m"]),
    ],
)
def test_every_key_on_the_command_line_is_removed(given: list[str], kept: list[str]) -> None:
    sister = a_sister(a_deployment(a_container(command=["vllm", *given])))
    assert server_of(sister)["args"] == ["vllm", *kept, *LISTENS, "8000"]


def by_key(name: str, secret: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": "token"}}}


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (["vllm", "serve", "m", "--hf-token", "$(HUB)", "--seed", "1"], None),
        (["sh", "-c"], ["exec vllm serve m --hf-token=${HUB} --seed 1"]),
    ],
)
def test_a_secret_that_would_be_written_into_the_command_reaches_the_server_otherwise(
    command: list[str], args: list[str] | None
) -> None:
    # ncu's report, which goes into the bundle, holds the command line with its values.
    container = a_container(command=command, args=args, env=[by_key("HUB", "hub")])
    sister = a_sister(a_deployment(container))
    started = " ".join(server_of(sister)["command"] + server_of(sister)["args"])
    assert "hf-token" not in started
    assert "--seed 1" in started
    assert by_key("HF_TOKEN", "hub") in server_of(sister)["env"]
    assert "sister-secret-not-copied" not in codes(sister)


def test_a_variable_that_has_the_token_already_stays_as_it_is() -> None:
    command = ["vllm", "serve", "m", "--hf-token", "$(HF_TOKEN)"]
    sister = a_sister(a_deployment(a_container(command=command)))
    assert env_names(server_of(sister)).count("HF_TOKEN") == 1


def test_another_secret_option_is_dropped_and_said() -> None:
    command = ["vllm", "serve", "m", "--store-password", "$(PASSWORD)"]
    sister = a_sister(a_deployment(a_container(command=command)))
    assert "--store-password" not in server_of(sister)["args"]
    assert "sister-secret-not-copied" in codes(sister)


def test_any_other_word_that_holds_a_secret_refuses() -> None:
    command = ["vllm", "serve", "s3://$(USER_KEY)@store/m", "--served-model-name", "$(NAME)"]
    env = [by_key("USER_KEY", "store"), *literal(NAME="chat")]
    sister = a_sister(a_deployment(a_container(command=command, env=env)))
    assert codes(sister, blocking=True) == ["sister-secret-in-command"]


def test_a_plain_secret_in_a_start_script_refuses() -> None:
    script = "export HF_TOKEN=hf_1234567890; vllm serve m"
    sister = a_sister(a_deployment(a_container(command=["sh", "-c", script])))
    assert codes(sister, blocking=True) == ["sister-secret-in-script"]
    assert "hf_1234567890" not in repr(sister)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "TOKEN_PATH", "HF_HOME"])
def test_names_that_only_sound_secret_are_not(name: str) -> None:
    assert not secrecy.is_secret(name, "value")


# -- brought ---------------------------------------------------------------------------------


def helpers(sister: Any) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in pod_spec(sister)["initContainers"]}


def test_tools_come_by_init_container_unless_told_otherwise() -> None:
    copier = helpers(a_sister())["solscope-tools"]
    assert copier["image"] == tooling.DEFAULT_IMAGE
    assert "restartPolicy" not in copier
    server = server_of(a_sister())
    assert {"name": "solscope-tools", "mountPath": "/solscope/tools", "readOnly": True} in server[
        "volumeMounts"
    ]


def test_blackwell_gets_ncu_from_the_image_for_blackwell() -> None:
    for plan in (a_plan(chip="GB100"), a_plan(compute_capability="10.3")):
        assert helpers(a_sister(plan=plan))["solscope-tools"]["image"] == tooling.BLACKWELL_IMAGE


def test_tools_can_come_as_an_image_volume() -> None:
    options = SisterOptions(tools=ToolsSource.IMAGE_VOLUME, ncu="/opt/n/ncu", tools_image="t:1")
    sister = a_sister(options=options)
    volume = next(v for v in pod_spec(sister)["volumes"] if v["name"] == "solscope-tools")
    assert volume["image"] == {"reference": "t:1", "pullPolicy": "IfNotPresent"}
    assert "/solscope/tools/opt/n/ncu" in server_of(sister)["command"]
    assert list(helpers(sister)) == ["solscope-results"]


def test_the_sidecar_is_native_sees_no_gpu_and_needs_no_privilege() -> None:
    sidecar = helpers(a_sister())["solscope-results"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["image"] == a_container()["image"]
    assert sidecar["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert sidecar["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert sidecar["resources"]["requests"] == sidecar["resources"]["limits"]


def test_a_limit_on_disk_gets_room_for_tools_and_reports_from_the_sidecar() -> None:
    limits = {"nvidia.com/gpu": 1, "ephemeral-storage": "10Gi"}
    sister = a_sister(a_deployment(a_container(resources={"limits": limits})))
    assert server_of(sister)["resources"]["limits"] == limits
    # 2 GiB for reports, 4 for the tools, 1 to spare.
    assert helpers(sister)["solscope-results"]["resources"]["limits"]["ephemeral-storage"] == "7Gi"
    unlimited = helpers(a_sister())["solscope-results"]["resources"]["limits"]
    assert "ephemeral-storage" not in unlimited


def test_a_large_report_gets_a_large_folder() -> None:
    cost = CostEstimate(pause_s=None, total_s=None, backup_bytes=None, report_bytes=2.0 * 2**30)
    volumes = pod_spec(a_sister(plan=a_plan(cost=cost)))["volumes"]
    results = next(v for v in volumes if v["name"] == "solscope-results")
    assert results["emptyDir"]["sizeLimit"] == "8Gi"


def test_a_pod_that_must_not_be_root_gets_helpers_that_are_not() -> None:
    server = a_container(securityContext={"runAsNonRoot": True})
    assert helpers(a_sister(a_deployment(server)))["solscope-tools"]["securityContext"]["runAsUser"]
    route = {"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": "x"}}
    openshift = helpers(a_sister(a_deployment(server), route))["solscope-tools"]
    assert "runAsUser" not in openshift["securityContext"]


def test_a_read_only_root_gets_a_place_to_write() -> None:
    server = a_container(securityContext={"readOnlyRootFilesystem": True})
    mounts = server_of(a_sister(a_deployment(server)))["volumeMounts"]
    assert "/tmp" in [mount["mountPath"] for mount in mounts]


def test_the_capability_for_counters_comes_with_what_makes_it_work() -> None:
    server = a_container(securityContext={"runAsNonRoot": True, "allowPrivilegeEscalation": False})
    context = server_of(a_sister(a_deployment(server), options=SisterOptions(sys_admin=True)))[
        "securityContext"
    ]
    assert context == {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "allowPrivilegeEscalation": True,
        "capabilities": {"add": ["SYS_ADMIN"]},
    }


def test_a_job_ends_by_itself_and_never_retries() -> None:
    job = a_sister(options=SisterOptions(deadline_s=60, time_to_live_s=5)).objects[-1]["spec"]
    assert (job["backoffLimit"], job["completions"], job["parallelism"]) == (0, 1, 1)
    assert (job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) == (60, 5)
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_the_deadline_follows_the_plan() -> None:
    def deadline(total_s: float | None) -> int:
        cost = CostEstimate(pause_s=None, total_s=total_s, backup_bytes=None, report_bytes=None)
        seconds: int = a_sister(plan=a_plan(cost=cost)).objects[-1]["spec"]["activeDeadlineSeconds"]
        return seconds

    # An hour at least; two hours of capture get four and half an hour for the start.
    assert (deadline(None), deadline(60.0), deadline(7200.0)) == (3600, 3600, 16200)


def test_a_deployment_selects_its_own_labels_and_is_warned_about() -> None:
    sister = a_sister(options=SisterOptions(kind=SisterKind.DEPLOYMENT))
    spec = sister.objects[-1]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert spec["replicas"] == 1
    assert "sister-without-end" in codes(sister)


def test_the_experiment_is_named_on_every_object_and_template() -> None:
    options = SisterOptions(experiment="run-7", harness="pass")
    sister = a_sister(plan=a_plan(strategy=Strategy.HARNESS), options=options)
    assert len(sister.objects) == 2
    for item in sister.objects:
        assert item["metadata"]["labels"]["experiment"] == "run-7"
    assert sister.objects[-1]["spec"]["template"]["metadata"]["labels"]["experiment"] == "run-7"


def test_a_companion_of_a_job_becomes_a_native_sidecar() -> None:
    helper = a_container(name="helper", resources=None)
    sister = a_sister(a_deployment(a_container(), helper))
    assert [item["name"] for item in pod_spec(sister)["containers"]] == ["server"]
    assert helpers(sister)["helper"]["restartPolicy"] == "Always"


def test_a_routing_proxy_does_not_come_along() -> None:
    proxy = {"name": "routing-proxy", "image": "p", "restartPolicy": "Always"}
    sister = a_sister(a_deployment(initContainers=[proxy]))
    assert "routing-proxy" not in helpers(sister)


def test_a_volume_for_one_node_binds_the_sister_to_it() -> None:
    claim = an_object("PersistentVolumeClaim", "weights", {"accessModes": ["ReadWriteOnce"]})
    volumes = [{"name": "w", "persistentVolumeClaim": {"claimName": "weights"}}]
    pod = an_object("Pod", "chat-1", {"nodeName": "gpu-7", "containers": []})
    pod["metadata"]["labels"] = {"app": "chat"}
    sister = a_sister(a_deployment(volumes=volumes), claim, pod)
    assert pod_spec(sister)["nodeSelector"] == {"kubernetes.io/hostname": "gpu-7"}


def test_attach_wraps_the_server_and_gives_the_second_command() -> None:
    plan = a_plan(strategy=Strategy.ATTACH, wrapper_arguments=("--mode", "launch"))
    sister = a_sister(plan=plan)
    assert server_of(sister)["command"][-3:] == [
        "/solscope/tools/nsight-compute/ncu",
        "--mode",
        "launch",
    ]
    assert sister.attach_command[0] == "/solscope/tools/nsight-compute/ncu"


def test_preload_is_marked_unverified() -> None:
    sister = a_sister(plan=a_plan(strategy=Strategy.PRELOAD))
    assert "sister-preload-unverified" in codes(sister)
    assert sister.objects[-1]["metadata"]["annotations"]["solscope/unverified"] == "preload"
    assert "NV_NCU_INJECTION64_PATH" in env_names(server_of(sister))


# -- refused ---------------------------------------------------------------------------------

GPU = {"limits": {"nvidia.com/gpu": 1}}


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (a_deployment(hostNetwork=True), "sister-host-network"),
        (a_deployment(a_container(resources={})), "sister-no-gpu-request"),
        (a_deployment(a_container(resources={"limits": {"amd.com/gpu": 1}})), "sister-not-nvidia"),
        (
            a_deployment(a_container(resources={"limits": {"nvidia.com/mig-1g.10gb": 1}})),
            "sister-shared-gpu",
        ),
        (
            a_deployment(resourceClaims=[{"name": "g", "resourceClaimName": "held"}]),
            "sister-claim-by-name",
        ),
        (a_deployment(a_container(command=None, args=["m"])), "sister-entrypoint-unknown"),
        (a_deployment(a_container(command=["sh", "-c", "exec $START"])), "sister-command-hidden"),
        (
            a_deployment(a_container(command=["vllm", "serve", "m", "--nnodes", "2"])),
            "sister-group",
        ),
        (
            a_deployment(
                a_container(command=["vllm", "serve", "--distributed-executor-backend", "ray"])
            ),
            "sister-ray",
        ),
        (a_deployment(a_container(command=["python3", "-m", "dynamo.vllm"])), "sister-discovery"),
        (a_deployment(labels={"solscope-sister": "x"}), "sister-of-a-sister"),
        (an_object("LeaderWorkerSet", "x", {"leaderWorkerTemplate": {}}), "sister-group"),
        (an_object("RayCluster", "x", {"headGroupSpec": {}}), "sister-ray"),
        (an_object("DynamoGraphDeployment", "x", {"services": {}}), "sister-discovery"),
        (an_object("InferenceService", "x", {"predictor": {}}), "sister-controller-owned"),
        (an_object("StormService", "x", {"template": {}}), "sister-controller-owned"),
    ],
)
def test_what_must_not_be_copied_is_refused_with_its_reason(
    target: dict[str, Any], code: str
) -> None:
    sister = a_sister(target)
    assert code in codes(sister, blocking=True)
    assert sister.objects == ()


def test_a_device_claim_from_a_template_is_fine() -> None:
    claims = [{"name": "g", "resourceClaimTemplateName": "gpu"}]
    server = a_container(resources={"claims": [{"name": "g"}]})
    assert not a_sister(a_deployment(server, resourceClaims=claims)).is_refused


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing"}, True),
        ({"nvidia.com/gpu.replicas": "4"}, True),
        ({"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "1"}, False),
        ({}, False),
    ],
)
def test_a_node_with_shared_gpus_refuses(labels: dict[str, str], refused: bool) -> None:
    node = {"kind": "Node", "metadata": {"name": "gpu-7", "labels": labels}}
    pod = an_object("Pod", "chat-1", {"nodeName": "gpu-7", "containers": []})
    pod["metadata"]["labels"] = {"app": "chat"}
    sister = a_sister(a_deployment(), node, pod)
    assert codes(sister, blocking=True) == (["sister-shared-gpu"] if refused else [])


def test_a_volume_for_one_pod_refuses() -> None:
    claim = an_object("PersistentVolumeClaim", "w", {"accessModes": ["ReadWriteOncePod"]})
    volumes = [{"name": "w", "persistentVolumeClaim": {"claimName": "w"}}]
    assert codes(a_sister(a_deployment(volumes=volumes), claim), blocking=True) == [
        "sister-volume-one-pod"
    ]


def test_volumes_of_a_stateful_set_refuse() -> None:
    target = a_deployment() | {"kind": "StatefulSet"}
    assert not a_sister(target).is_refused
    target["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "cache"}}]
    assert codes(a_sister(target), blocking=True) == ["sister-volume-claim-templates"]


def test_a_deployment_that_a_group_controller_owns_is_refused() -> None:
    target = a_deployment()
    owner = {"kind": "LeaderWorkerSet", "name": "big", "controller": True}
    target["metadata"]["ownerReferences"] = [owner]
    assert codes(a_sister(target), blocking=True) == ["sister-group"]


def test_every_reason_is_given_at_once() -> None:
    target = a_deployment(a_container(command=None, resources={}), hostNetwork=True)
    assert codes(a_sister(target), blocking=True) == [
        "sister-host-network",
        "sister-no-gpu-request",
        "sister-entrypoint-unknown",
    ]


def test_no_strategy_no_sister() -> None:
    plan = a_plan(strategy=Strategy.NONE)
    assert codes(a_sister(plan=plan), blocking=True) == ["sister-no-strategy"]


# -- names -----------------------------------------------------------------------------------


@given(st.text(st.characters(codec="ascii"), max_size=300))
def test_every_name_is_one_that_kubernetes_takes(target: str) -> None:
    name = naming.sister_name(target, "0123456789")
    assert len(name) <= 52
    assert name.replace("-", "").isalnum()
    assert name == name.lower().strip("-")


@pytest.mark.parametrize("text", ["", "-a", "a b", "x" * 64, "a/b"])
def test_an_experiment_that_is_no_label_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        naming.experiment_id(text)


@pytest.mark.parametrize("text", ["a", "=b", "a=b c", "A_/x=1", "a=-"])
def test_a_label_that_kubernetes_would_refuse_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        naming.check_label(text)


def test_another_plan_makes_another_sister() -> None:
    from solscope.capture.sister import assembly, target

    chosen = target.choose([a_deployment()])
    names = {
        assembly.build(
            chosen, a_plan(), objects=(), options=SisterOptions(), plan_digest=digest
        ).name
        for digest in ("a", "b", "a")
    }
    assert len(names) == 2


@pytest.mark.parametrize("login", ["login 'hf_1234567890'", "login --token hf_1234567890"])
def test_a_secret_that_no_rule_foresaw_refuses_at_the_last_look(login: str) -> None:
    command = ["sh", "-c", f"{login}; vllm serve m"]
    sister = a_sister(a_deployment(a_container(command=command)))
    assert codes(sister, blocking=True) == ["sister-secret-left"]
    assert sister.objects == ()
    assert "hf_1234567890" not in repr(sister.findings)


def unset_names(sister: Any) -> list[str]:
    command = server_of(sister)["command"]
    words = command if command[0] == "env" else server_of(sister)["args"][0].split()
    return [word for flag, word in itertools.pairwise(words) if flag == "-u"]


def test_peers_named_in_a_config_map_are_unset_and_an_unseen_source_is_said() -> None:
    maps = [{"configMapRef": {"name": "seen"}}, {"configMapRef": {"name": "unseen"}}]
    config = {
        "kind": "ConfigMap",
        "metadata": {"name": "seen"},
        "data": {"LMCACHE_CONTROLLER_URL": "tcp://x", "HF_HOME": "/data"},
    }
    sister = a_sister(a_deployment(a_container(envFrom=maps)), config)
    assert "LMCACHE_CONTROLLER_URL" in unset_names(sister)
    assert "HF_HOME" not in unset_names(sister)
    (finding,) = [item for item in sister.findings if item.code == "sister-variables-unseen"]
    assert "ConfigMap/unseen" in finding.fact


def test_peers_named_in_a_start_script_are_unset() -> None:
    script = "export RAY_ADDRESS=x:1; LMCACHE_X=1 vllm serve m"
    sister = a_sister(a_deployment(a_container(command=["sh", "-c", script])))
    assert {"RAY_ADDRESS", "LMCACHE_X"} <= set(unset_names(sister))


def test_a_plan_for_another_target_is_said() -> None:
    code = "sister-plan-of-another-target"
    assert code in codes(a_sister(plan=a_plan(target="deploy/x")))
    assert code not in codes(a_sister(plan=a_plan(target="deploy/chat")))


def test_the_sister_goes_to_the_same_gpu_product_as_the_target() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H200", "kubernetes.io/hostname": "gpu-7.local"}
    node = {"kind": "Node", "metadata": {"name": "gpu-7", "labels": labels}}
    pod = an_object("Pod", "chat-1", {"nodeName": "gpu-7", "containers": []})
    pod["metadata"]["labels"] = {"app": "chat"}
    own = {"nvidia.com/gpu.product": "NVIDIA-H100"}
    product = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    assert pod_spec(a_sister(a_deployment(), node, pod))["nodeSelector"] == product
    assert pod_spec(a_sister(a_deployment(nodeSelector=own), node, pod))["nodeSelector"] == own


@pytest.mark.parametrize(("read_only", "said"), [(False, True), (True, False)])
def test_a_folder_of_the_node_that_is_written_is_said(read_only: bool, said: bool) -> None:
    mount = {"name": "cache", "mountPath": "/cache", "readOnly": read_only}
    volume = {"name": "cache", "hostPath": {"path": "/data/models"}}
    target = a_deployment(a_container(volumeMounts=[mount]), volumes=[volume])
    found = [f.where for f in a_sister(target).findings if f.code == "sister-shared-cache"]
    assert found == (["volume cache (hostPath /data/models)"] if said else [])


def test_a_creation_that_is_interrupted_leaves_no_half_of_a_sister() -> None:
    class Interrupted(FakeCluster):
        def create(self, obj: Any, *, dry_run: bool = False) -> Any:
            made = super().create(obj, dry_run=dry_run)
            if obj["kind"] == "Job":
                raise KeyboardInterrupt
            return made

    options = SisterOptions(harness="print(1)")
    sister = a_sister(a_deployment(), plan=a_plan(strategy=Strategy.HARNESS), options=options)
    cluster = Interrupted([])
    with pytest.raises(KeyboardInterrupt):
        creation.create(cluster, sister)
    assert "create configmap" in cluster.calls
    assert cluster.objects == []


def test_a_companion_that_is_not_wanted_is_left_out() -> None:
    agent = a_container(name="registrar", resources=None)
    fetch = {"name": "fetch", "image": "tools"}
    target = a_deployment(a_container(), agent, initContainers=[fetch])
    assert "sister-companions-kept" in codes(a_sister(target))
    options = SisterOptions(without=("registrar", "fetch"))
    sister = a_sister(target, options=options, container="server")
    names = [item["name"] for item in pod_spec(sister)["initContainers"]]
    assert names == ["solscope-tools", "solscope-results"]
    assert "sister-companions-kept" not in codes(sister)
    for wrong in ("server", "nobody"):
        with pytest.raises(UsageError, match="beside the server"):
            a_sister(target, options=SisterOptions(without=(wrong,)), container="server")


def test_the_nodes_shared_memory_is_kept_as_the_target_has_it_and_warned_of() -> None:
    sister = a_sister(a_deployment(a_container(), hostIPC=True))
    assert pod_spec(sister)["hostIPC"] is True
    assert "sister-node-memory" in codes(sister)
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    volume = {"name": "shm", "hostPath": {"path": "/dev/shm"}}
    by_path = a_sister(a_deployment(a_container(volumeMounts=mounts), volumes=[volume]))
    assert volume in pod_spec(by_path)["volumes"]
    assert "sister-node-memory" in codes(by_path)
    own = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    usual = a_sister(a_deployment(a_container(volumeMounts=mounts), volumes=[own]))
    assert "sister-node-memory" not in codes(usual)


def test_annotations_that_bring_the_servers_files_are_kept() -> None:
    kept = {"gke-gcsfuse/volumes": "true", "vault.hashicorp.com/agent-inject": "true"}
    target = a_deployment()
    given = {**kept, "dapr.io/enabled": "true"}
    target["spec"]["template"]["metadata"]["annotations"] = given
    annotations = a_sister(target).objects[-1]["spec"]["template"]["metadata"]["annotations"]
    assert {key: annotations.get(key) for key in given} == {**kept, "dapr.io/enabled": None}


def test_a_copy_that_never_ends_may_be_moved() -> None:
    sister = a_sister(options=SisterOptions(kind=SisterKind.DEPLOYMENT))
    assert "annotations" not in sister.objects[-1]["spec"]["template"]["metadata"]


# -- its end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("control", "resets"), [("base", True), ("boost", True), ("none", False)])
def test_a_deletion_ends_the_server_and_frees_clocks_that_ncu_locks(
    control: str, resets: bool
) -> None:
    before = a_container(lifecycle={"preStop": {"exec": {"command": ["sleep", "30"]}}})
    sister = a_sister(a_deployment(before), plan=a_plan(clock_control=control))
    hook = server_of(sister)["lifecycle"]["preStop"]["exec"]["command"]
    assert hook[:2] == ["sh", "-c"]
    assert f"touch {tooling.COLLECTED}" in hook[2]
    assert ("/solscope/tools/nsight-compute/ncu --clock-control reset" in hook[2]) is resets
