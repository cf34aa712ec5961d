"""Real kubectl against the test cluster, with real containers."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.cluster import tools
from tests.cluster.fixture import Cluster

pytestmark = pytest.mark.cluster

SERVER = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000, bind='127.0.0.1')"


def a_pod(name: str, command: list[str] | None = None, **spec: object) -> str:
    container = {"name": "srv", "image": "plain", "command": command or ["sleep", "1000"]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }
    return json.dumps(body)


def a_deployment(name: str, replicas: int = 2, text: str = "one") -> str:
    command = ["sh", "-c", f"echo {text}; trap 'exit 0' TERM; sleep 1000 & wait"]
    container = {"name": "srv", "image": "plain", "command": command}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    selector = {"matchLabels": {"app": name}}
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        }
    )


def a_role(user: str) -> str:
    """A role that may look at pods, bound to a user."""
    api, group = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    meta = {"name": "looker"}
    role = {"apiVersion": api, "kind": "Role", "metadata": meta, "rules": [rule]}
    binding = {
        "apiVersion": api,
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "looker"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    return f"{json.dumps(role)}\n---\n{json.dumps(binding)}"


def start(cluster: Cluster, namespace: str, manifest: str) -> str:
    """Apply a pod and wait until it is ready; gives its name."""
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest)
    name = str(json.loads(manifest)["metadata"]["name"])
    cluster.kubectl(
        "-n", namespace, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s"
    )
    return name


@pytest.fixture(params=[tools.CURRENT, tools.OLD])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_client_and_server_tell_their_versions(cluster: Cluster, version: str) -> None:
    told = json.loads(cluster.kubectl("version", "-o", "json", version=version).stdout)
    assert told["serverVersion"]["gitVersion"] == "v1.36.2"
    assert told["clientVersion"]["gitVersion"].startswith(f"v{version}.")


def test_exec_gives_both_outputs_and_the_exit_code(
    cluster: Cluster, namespace: str, version: str
) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    script = "echo out; echo err >&2; exit 5"
    command = ("-n", namespace, "exec", pod, "--", "sh", "-c", script)
    done = cluster.kubectl(*command, version=version, check=False)
    assert (done.stdout, done.returncode) == (b"out\n", 5)
    assert done.stderr.startswith(b"err\n")


def test_exec_ends_when_its_input_ends(cluster: Cluster, namespace: str, version: str) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    data = os.urandom(1_000_003)
    done = cluster.kubectl(
        "-n", namespace, "exec", "-i", pod, "--", "sha256sum", stdin=data, version=version
    )
    assert done.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_a_command_that_is_not_there_is_an_error_of_the_runtime(
    cluster: Cluster, namespace: str
) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    done = cluster.kubectl("-n", namespace, "exec", pod, "--", "nosuch", check=False)
    assert done.returncode == 1
    assert b'exec: "nosuch": executable file not found in $PATH' in done.stderr


def test_an_image_can_lack_tar(cluster: Cluster, namespace: str) -> None:
    manifest = a_pod("p").replace('"plain"', '"plain-no-tar"')
    pod = start(cluster, namespace, manifest)
    done = cluster.kubectl("-n", namespace, "cp", f"{pod}:/etc/hostname", "/dev/null", check=False)
    assert done.returncode == 1
    assert b'exec: "tar": executable file not found' in done.stderr


def test_cp_there_and_back_keeps_every_byte(
    cluster: Cluster, namespace: str, version: str, tmp_path: Path
) -> None:
    pod = start(cluster, namespace, a_pod("p"))
    data = os.urandom(16 << 20)
    (tmp_path / "there").write_bytes(data)
    common = ("-n", namespace, "cp")
    cluster.kubectl(*common, str(tmp_path / "there"), f"{pod}:/srv/f", version=version)
    cluster.kubectl(*common, f"{pod}:/srv/f", str(tmp_path / "back"), version=version)
    assert (tmp_path / "back").read_bytes() == data


def test_logs_are_what_the_container_wrote(cluster: Cluster, namespace: str) -> None:
    pod = start(
        cluster, namespace, a_pod("p", ["sh", "-c", "echo a; sleep 1; echo b >&2; sleep 100"])
    )
    wanted = ("-n", namespace, "logs", pod)
    cluster.until(lambda: cluster.kubectl(*wanted).stdout == b"a\nb\n")
    assert cluster.kubectl(*wanted, "--tail=1").stdout == b"b\n"


def test_logs_are_followed_to_the_end(cluster: Cluster, namespace: str) -> None:
    script = "for i in 1 2 3; do echo $i; sleep 0.3; done"
    manifest = a_pod("p", ["sh", "-c", script], restartPolicy="Never")
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest)
    cluster.until(lambda: "running" in str(cluster.get("pods", "p", namespace).get("status")))
    done = cluster.kubectl("-n", namespace, "logs", "-f", "p")
    assert done.stdout == b"1\n2\n3\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_port_forward_reaches_the_pod_s_own_loopback(
    cluster: Cluster, namespace: str, version: str
) -> None:
    command = ["/usr/bin/env", "python3", "-c", SERVER]
    probe = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    manifest = json.loads(a_pod("p", command))
    manifest["spec"]["containers"][0]["readinessProbe"] = probe
    pod = start(cluster, namespace, json.dumps(manifest))
    port = free_port()
    program = [str(tools.kubectl_path(version)), "-n", namespace, "port-forward", pod]
    with subprocess.Popen(
        [*program, f"{port}:8000"],
        env=cluster.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as forward:
        try:
            assert forward.stdout is not None
            assert b"Forwarding from" in forward.stdout.readline()
            for _ in range(3):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/", timeout=60) as page:
                    assert b"passwd" in page.read()
        finally:
            forward.terminate()


def test_apply_on_either_side_and_patch_change_one_object(cluster: Cluster, namespace: str) -> None:
    here = ("-n", namespace)
    assert (
        b"created" in cluster.kubectl(*here, "apply", "-f", "-", stdin=a_deployment("d", 0)).stdout
    )
    again = cluster.kubectl(*here, "apply", "-f", "-", stdin=a_deployment("d", 0))
    assert b"unchanged" in again.stdout
    cluster.kubectl(
        *here, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=a_deployment("d", 1)
    )
    assert cluster.get("deployments.apps", "d", namespace)["spec"]["replicas"] == 1
    cluster.kubectl(*here, "patch", "deployment", "d", "-p", '{"spec":{"replicas":0}}')
    assert cluster.get("deployments.apps", "d", namespace)["spec"]["replicas"] == 0
    cluster.kubectl(*here, "scale", "deployment", "d", "--replicas=2")
    assert cluster.get("deployments.apps", "d", namespace)["spec"]["replicas"] == 2


def test_a_rollout_replaces_every_pod(cluster: Cluster, namespace: str) -> None:
    here = ("-n", namespace)
    cluster.kubectl(*here, "apply", "-f", "-", stdin=a_deployment("d", 2, "one"))
    status = (*here, "rollout", "status", "deployment/d", "--timeout=120s")
    assert b"successfully rolled out" in cluster.kubectl(*status).stdout
    cluster.kubectl(*here, "apply", "-f", "-", stdin=a_deployment("d", 2, "two"))
    assert b"successfully rolled out" in cluster.kubectl(*status).stdout
    listed = (*here, "get", "pods", "-l", "app=d", "--no-headers")
    cluster.until(lambda: cluster.kubectl(*listed).stdout.count(b"Running") == 2)
    cluster.until(lambda: b"Terminating" not in cluster.kubectl(*listed).stdout)
    logs = cluster.kubectl(*here, "logs", "-l", "app=d").stdout
    assert logs == b"two\ntwo\n"


def test_delete_takes_replica_sets_and_pods_along(cluster: Cluster, namespace: str) -> None:
    here = ("-n", namespace)
    cluster.kubectl(*here, "apply", "-f", "-", stdin=a_deployment("d", 2))
    cluster.kubectl(*here, "rollout", "status", "deployment/d", "--timeout=120s")
    cluster.kubectl(*here, "delete", "deployment", "d", "--cascade=foreground", "--timeout=120s")
    left = cluster.kubectl(*here, "get", "deployments,replicasets,pods", "-o", "name").stdout
    assert left == b""


def test_a_job_ends_at_its_deadline_and_expires(cluster: Cluster, namespace: str) -> None:
    pod = json.loads(a_pod("j"))["spec"] | {"restartPolicy": "Never"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "activeDeadlineSeconds": 2,
            "ttlSecondsAfterFinished": 1,
            "backoffLimit": 0,
            "template": {"spec": pod},
        },
    }
    here = ("-n", namespace)
    cluster.kubectl(*here, "apply", "-f", "-", stdin=json.dumps(job))
    cluster.kubectl(*here, "wait", "--for=condition=Failed", "job/j", "--timeout=120s")
    cluster.until(
        lambda: cluster.kubectl(*here, "get", "jobs,pods", "-o", "name").stdout == b"", 20
    )


def test_a_native_sidecar_starts_first_and_outlives_the_main_container(
    cluster: Cluster, namespace: str
) -> None:
    mount = [{"name": "out", "mountPath": "/out"}]
    sidecar = {
        "name": "keeper",
        "image": "plain",
        "command": ["sh", "-c", "touch /out/first; sleep 1000"],
        "restartPolicy": "Always",
        "volumeMounts": mount,
    }
    manifest = json.loads(
        a_pod("p", ["sh", "-c", "test -e /out/first && echo yes > /out/seen; sleep 2"])
    )
    spec = manifest["spec"]
    spec["containers"][0]["volumeMounts"] = mount
    spec |= {
        "initContainers": [sidecar],
        "volumes": [{"name": "out", "emptyDir": {}}],
        "restartPolicy": "Always",
    }
    start(cluster, namespace, json.dumps(manifest))
    read = ("-n", namespace, "exec", "p", "-c", "keeper", "--", "cat", "/out/seen")
    assert cluster.until(lambda: cluster.kubectl(*read, check=False).stdout) == b"yes\n"


def test_a_pod_waits_while_no_gpu_is_free(cluster: Cluster, namespace: str) -> None:
    manifest = json.loads(a_pod("p"))
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "9"}}
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(manifest))
    events = ("-n", namespace, "get", "events", "--field-selector=reason=FailedScheduling")
    told = cluster.until(lambda: cluster.kubectl(*events).stdout)
    assert b"0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in told


def test_an_image_that_cannot_be_pulled_is_told_in_the_status(
    cluster: Cluster, namespace: str
) -> None:
    manifest = a_pod("p").replace('"plain"', '"missing/x:1"')
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest)
    listed = ("-n", namespace, "get", "pods")
    cluster.until(lambda: b"ErrImagePull" in cluster.kubectl(*listed).stdout)


def test_a_failing_liveness_probe_restarts_the_container(cluster: Cluster, namespace: str) -> None:
    manifest = json.loads(a_pod("p"))
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}
    manifest["spec"]["containers"][0]["livenessProbe"] = probe
    manifest["spec"]["terminationGracePeriodSeconds"] = 0
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(manifest))

    def restarts() -> int:
        status = cluster.get("pods", "p", namespace).get("status") or {}
        return sum(e["restartCount"] for e in status.get("containerStatuses", []))

    assert cluster.until(restarts) >= 1


def test_rights_are_what_roles_give(cluster: Cluster, namespace: str) -> None:
    cluster.add_user("viewer")
    ask = ("-n", namespace, "auth", "can-i")
    assert cluster.kubectl(*ask, "create", "pods/exec").stdout == b"yes\n"
    refused = cluster.kubectl(*ask, "list", "pods", user="viewer", check=False)
    assert (refused.stdout, refused.returncode) == (b"no\n", 1)
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=a_role("viewer"))
    allowed = cluster.kubectl(*ask, "list", "pods", user="viewer")
    assert allowed.stdout == b"yes\n"
    denied = cluster.kubectl("-n", namespace, "get", "secrets", user="viewer", check=False)
    assert b'User "viewer" cannot list resource "secrets" in API group ""' in denied.stderr


def test_commands_that_post_protobuf_are_understood(cluster: Cluster, namespace: str) -> None:
    here = ("-n", namespace, "create")
    cluster.kubectl("create", "namespace", f"{namespace}-b")
    cluster.kubectl(*here, "configmap", "c", "--from-literal=a=b")
    cluster.kubectl(*here, "secret", "generic", "s", "--from-literal=k=v")
    assert cluster.get("configmaps", "c", namespace)["data"] == {"a": "b"}
    assert cluster.get("secrets", "s", namespace)["data"] == {"k": "dg=="}
    cluster.kubectl("delete", "namespace", f"{namespace}-b", "--timeout=120s")
    refused = cluster.kubectl(*here, "deployment", "d", "--image=plain", check=False)
    assert b"reads no protobuf body of kind Deployment" in refused.stderr


def test_secrets_and_maps_reach_containers(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("-n", namespace, "create", "secret", "generic", "s", "--from-literal=k=v1")
    manifest = json.loads(a_pod("p"))
    container = manifest["spec"]["containers"][0]
    container["env"] = [
        {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "TWICE", "value": "$(K)-$(K)-$(NOPE)"},
    ]
    container["volumeMounts"] = [{"name": "s", "mountPath": "/etc/s", "readOnly": True}]
    manifest["spec"]["volumes"] = [{"name": "s", "secret": {"secretName": "s"}}]
    pod = start(cluster, namespace, json.dumps(manifest))
    script = "echo $K $TWICE $(cat /etc/s/k)"
    told = cluster.kubectl("-n", namespace, "exec", pod, "--", "sh", "-c", script).stdout
    assert told == b"v1 v1-v1-$(NOPE) v1\n"


def test_users_and_capabilities_are_real(cluster: Cluster, namespace: str) -> None:
    manifest = json.loads(a_pod("p"))
    manifest["spec"]["containers"][0]["securityContext"] = {
        "runAsUser": 1000,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    pod = start(cluster, namespace, json.dumps(manifest))
    script = "id -u; touch /srv/x; grep -E 'CapEff|NoNewPrivs' /proc/self/status"
    done = cluster.kubectl("-n", namespace, "exec", pod, "--", "sh", "-c", script)
    told = done.stdout.decode().split()
    assert told == ["1000", "CapEff:", "0000000000000000", "NoNewPrivs:", "1"]
    assert b"Read-only file system" in done.stderr


def test_a_crashed_container_waits_and_keeps_its_last_words(
    cluster: Cluster, namespace: str
) -> None:
    manifest = a_pod("p", ["sh", "-c", "echo round; sleep 0.3; exit 4"])
    cluster.kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest)

    def status() -> dict[str, object]:
        found = cluster.get("pods", "p", namespace).get("status") or {}
        return (found.get("containerStatuses") or [{}])[0]

    cluster.until(lambda: status().get("restartCount", 0) == 2)
    assert status()["lastState"]["terminated"]["exitCode"] == 4
    previous = cluster.kubectl("-n", namespace, "logs", "p", "--previous").stdout
    assert previous == b"round\n"


def test_debug_joins_the_target_s_processes(cluster: Cluster, namespace: str) -> None:
    pod = start(cluster, namespace, a_pod("p", ["sleep", "987"]))
    cluster.kubectl(
        *("-n", namespace, "debug", pod, "--image=plain", "--target=srv", "--profile=general"),
        *("-c", "look", "--", "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; sleep 100"),
    )
    logs = ("-n", namespace, "logs", pod, "-c", "look")
    told = cluster.until(lambda: cluster.kubectl(*logs, check=False).stdout)
    assert told == b"sleep 987 "


def test_the_session_leaves_time_for_others(cluster: Cluster, namespace: str) -> None:
    begun = time.monotonic()
    start(cluster, namespace, a_pod("quick"))
    assert time.monotonic() - begun < 60
