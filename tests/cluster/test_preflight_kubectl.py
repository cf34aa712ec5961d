"""A real kubectl against a small API server: the whole journey, and each right refused in turn.

Needs kubectl 1.30 or newer on PATH or in SOLSCOPE_KUBECTL; nothing outside this machine.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solscope.cluster.kubectl import Kubectl
from solscope.cluster.port import Conflict, Forbidden, NotFound, UnknownKind, Unreachable
from solscope.errors import ClusterError
from solscope.flows import preflight
from solscope.flows.preflight import PreflightRequest
from solscope.flows.world import Outcome, World
from tests.corpus import SHARED, require
from tests.fakes.apiserver import ApiServer
from tests.workloads import NOW, deployment, namespace, node, replica_set, running

KUBECTL = shutil.which(os.environ.get("SOLSCOPE_KUBECTL") or "kubectl")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH or in SOLSCOPE_KUBECTL"),
]
WORLD = World(now=lambda: NOW)
RIGHTS = (
    "get nodes",
    "list services",
    "list events",
    "get namespaces",
    "list pods",
    "list pods (everywhere)",
    "list horizontalpodautoscalers",
    "list poddisruptionbudgets",
    "list networkpolicies",
    "list resourcequotas",
    "list configmaps",
    "list persistentvolumeclaims",
)


def an_event() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "serving"},
        "reason": "Pulling",
        "message": "Pulling image",
        "involvedObject": {"kind": "Pod", "name": "chat-1"},
    }


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    made = deployment()
    objects = [made, replica_set(made), running(made), node(), namespace("baseline"), an_event()]
    with ApiServer(objects) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path)))
        monkeypatch.setenv("HOME", str(tmp_path))  # kubectl keeps its discovery cache there
        yield api


def connected(**options: Any) -> Kubectl:
    return Kubectl(context="here", **options)


def look(target: str = "deploy/chat", **options: Any) -> Outcome:
    request = PreflightRequest(target=target, context="here", namespace="serving", **options)
    return preflight.run(request, WORLD)


def test_the_whole_journey_ends_in_an_answer(server: ApiServer) -> None:
    outcome = look()
    assert "NVIDIA-H100-80GB-HBM3" in outcome.text
    assert outcome.value.line.startswith("undetermined: does the node let users read counters")
    assert "image-pull-in-progress" in outcome.text
    assert all(request.startswith("GET ") for request in server.requests)


def test_looking_inside_through_kubectl_settles_the_counters(server: ApiServer) -> None:
    answers = b"@@solscope:params\nRmProfilingAdminOnly: 0\n@@solscope:devices\n/dev/nvidia0\n"
    server.outputs["sh"] = (answers, 0)
    outcome = look(exec=True)
    assert outcome.exit_code == 0
    assert outcome.value.line.startswith("launch")


def test_the_current_context_is_never_changed(server: ApiServer, tmp_path: Path) -> None:
    before = (tmp_path / "kubeconfig").read_text()
    look()
    assert (tmp_path / "kubeconfig").read_text() == before
    assert json.loads(before)["current-context"] == "other"


@pytest.mark.parametrize("right", RIGHTS)
def test_each_refused_right_is_unknown_and_named(server: ApiServer, right: str) -> None:
    server.denied = frozenset({right})
    outcome = look()
    shown = right.replace(" (everywhere)", "")
    verb, plural = shown.split()
    assert f"{verb} {plural}" in outcome.text


def test_all_rights_refused_but_the_target_still_answers(server: ApiServer) -> None:
    server.denied = frozenset(RIGHTS)
    outcome = look()
    assert outcome.value.line.startswith("launch")
    assert "Not read" in outcome.text


def test_a_refused_target_is_an_error_that_names_the_right(server: ApiServer) -> None:
    server.denied = frozenset({"get deployments"})
    with pytest.raises(Forbidden) as caught:
        look()
    assert caught.value.right == "get deployments.apps (namespace serving)"


def test_a_refused_exec_is_an_unknown(server: ApiServer) -> None:
    server.denied = frozenset({"create pods/exec"})
    assert "create pods/exec" in look(exec=True).text


def test_what_is_not_there_is_told_apart(server: ApiServer) -> None:
    with pytest.raises(NotFound, match="not found"):
        look("deploy/gone")
    with pytest.raises(UnknownKind):
        look("lws/x")


def test_a_wrong_context_is_answered_with_the_known_ones(server: ApiServer) -> None:
    with pytest.raises(ClusterError) as caught:
        Kubectl(context="nope")
    assert "here" in str(caught.value)
    assert "nope" in str(caught.value)


def test_a_cluster_that_does_not_answer_is_unreachable(server: ApiServer) -> None:
    with pytest.raises(Unreachable):
        Kubectl(context="other", timeout_s=5).get("pod", "x")


def test_no_kubectl_is_an_error_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLSCOPE_KUBECTL", "kubectl-that-is-not-there")
    with pytest.raises(ClusterError, match="was not found"):
        Kubectl()


def test_the_contexts_own_namespace_is_used(server: ApiServer) -> None:
    assert connected().namespace == "serving"


def test_lists_take_label_and_field_selectors(server: ApiServer) -> None:
    cluster = connected()
    assert len(cluster.list("pods", labels="app=chat")) == 1
    assert cluster.list("pods", labels="app=other") == ()
    assert len(cluster.list("pods", fields="spec.nodeName=gpu-a", everywhere=True)) == 1


def test_exec_gives_bytes_and_the_commands_own_exit_code(server: ApiServer) -> None:
    data = bytes(range(256)) * 400
    server.outputs["cat"] = (data, 3)
    result = connected().exec("chat-1", "server", ["cat", "x"])
    assert (result.stdout, result.exit_code, result.failed_to_start) == (data, 3, False)


def test_access_reviews_are_asked_of_the_server(server: ApiServer) -> None:
    server.denied = frozenset({"create pods/exec"})
    cluster = connected()
    assert cluster.can_i("get", "pods")
    assert not cluster.can_i("create", "pods/exec")


def test_a_watch_gives_what_is_there_and_ends(server: ApiServer) -> None:
    events = list(connected().watch("pods", labels="app=chat", timeout_s=6))
    assert events[0].type == "ADDED"
    assert events[0].object["metadata"]["name"] == "chat-1"


def test_delete_with_a_uid_spares_another_object_of_that_name(server: ApiServer) -> None:
    cluster = connected()
    with pytest.raises(Conflict):
        cluster.delete("deployment", "chat", uid="another")
    cluster.delete("deployment", "chat", uid="d-1")
    with pytest.raises(NotFound):
        cluster.get("deployment", "chat")
    cluster.delete("deployment", "chat", uid="d-1")  # gone already: no error


@pytest.mark.parametrize("name", ["vllm-docs-nvidia", "gke-inference-gateway", "openshift-vllm"])
def test_recorded_objects_of_a_real_api_server_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = require(SHARED / "manifests" / "live")
    objects = json.loads((folder / f"{name}.json").read_text())["items"]
    objects += json.loads((folder / "nodes.json").read_text())["items"]
    made = next(o for o in objects if o["kind"] == "Deployment")
    space = made["metadata"]["namespace"]
    with ApiServer(objects) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path, space)))
        monkeypatch.setenv("HOME", str(tmp_path))
        outcome = preflight.run(
            PreflightRequest(target=f"deploy/{made['metadata']['name']}", context="here"), WORLD
        )
    assert outcome.value.line.startswith("launch")
