"""The sister of a live workload through a real kubectl: read, rehearse, create, be refused.

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

from solscope.capture import planfile
from solscope.errors import ClusterError
from solscope.flows import sister as flow
from solscope.flows.world import Outcome, World
from solscope.model.sister import Sister
from tests.fakes import apiserver
from tests.sisters import a_deployment, a_plan, an_object

KUBECTL = shutil.which(os.environ.get("SOLSCOPE_KUBECTL") or "kubectl")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH or in SOLSCOPE_KUBECTL"),
]
REFUSAL = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged'


class _CreatingHandler(apiserver._Handler):
    """Takes objects as the API server does: validated elsewhere, kept unless it is a dry run.

    kubectl asks the OpenAPI document whether the server can validate fields itself.
    """

    def create(self) -> None:
        if "selfsubjectaccessreviews" in self.path:
            apiserver._Handler.do_POST(self)
            return
        obj = json.loads(self._body())
        dry_run, strict = "dryRun=All" in self.path, "fieldValidation=Strict" in self.path
        self.api.made.append((obj["kind"], dry_run, strict))
        if obj["kind"] == "Pod" and "pods refused" in self.api.denied:
            self._status(403, "Forbidden", REFUSAL)
            return
        self._json(201, {**obj, "metadata": {**obj["metadata"], "uid": "uid-1"}})

    def read(self) -> None:
        versions = {"api/v1": ("", "pods", "Pod"), "apis/batch/v1": ("batch", "jobs", "Job")}
        path = self.path.partition("?")[0]
        if path == "/openapi/v3":
            urls = {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in versions}
            self._json(200, {"paths": urls})
        elif path.startswith("/openapi/v3/"):
            version = path.removeprefix("/openapi/v3/")
            self._json(200, _openapi(version, *versions[version]))
        else:
            apiserver._Handler.do_GET(self)


def _openapi(version: str, group: str, plural: str, kind: str) -> dict[str, Any]:
    names = ("fieldValidation", "dryRun")
    patch = {
        "parameters": [{"name": name, "in": "query"} for name in names],
        "x-kubernetes-group-version-kind": {"group": group, "version": "v1", "kind": kind},
    }
    path = f"/{version}/namespaces/{{namespace}}/{plural}/{{name}}"
    return {"openapi": "3.0.0", "info": {}, "paths": {path: {"patch": patch}}}


class CreatingServer(apiserver.ApiServer):
    """The API server with creation. ``made`` lists (kind, dry run, strict) in order."""

    def __init__(self, objects: list[dict[str, Any]]) -> None:
        super().__init__(objects)
        self.made: list[tuple[str, bool, bool]] = []
        own = {"api": self, "do_POST": _CreatingHandler.create, "do_GET": _CreatingHandler.read}
        self._server.RequestHandlerClass = type("Handler", (_CreatingHandler,), own)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CreatingServer]:
    jobs = {"batch/v1": (("jobs", "Job", True, ()),)}
    monkeypatch.setattr(apiserver, "RESOURCES", {**apiserver.RESOURCES, **jobs})
    objects = [
        a_deployment() | {"apiVersion": "apps/v1"},
        an_object("Service", "chat", {"selector": {"app": "chat"}}),
    ]
    with CreatingServer(objects) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path)))
        monkeypatch.setenv("HOME", str(tmp_path))  # kubectl keeps its discovery cache there
        yield api


def run(folder: Path, **options: Any) -> Outcome:
    plan = folder / "plan.json"
    plan.write_bytes(planfile.to_json(a_plan()))
    request = flow.SisterRequest(
        plan=plan, workload="deploy/chat", context="here", namespace="prod", **options
    )
    return flow.run(request, World())


def codes(outcome: Outcome) -> list[str]:
    assert isinstance(outcome.value, Sister)
    return [item.code for item in outcome.value.findings if item.blocks]


def test_a_live_target_is_read_and_nothing_is_made(server: CreatingServer, tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert (outcome.exit_code, server.made) == (0, [])
    assert "Service/chat spec.selector: app=chat" in outcome.text


def test_a_rehearsal_asks_strictly_and_keeps_nothing(
    server: CreatingServer, tmp_path: Path
) -> None:
    outcome = run(tmp_path, apply=True)
    assert server.made == [("Pod", True, True), ("Job", True, True)]
    assert "rehearsed" in outcome.text


def test_yes_creates_the_job_and_names_its_uid(server: CreatingServer, tmp_path: Path) -> None:
    outcome = run(tmp_path, apply=True, yes=True)
    assert server.made[-1] == ("Job", False, True)
    assert "uid uid-1" in outcome.text


def test_pod_security_is_found_before_anything_is_made(
    server: CreatingServer, tmp_path: Path
) -> None:
    server.denied = frozenset({"pods refused"})
    outcome = run(tmp_path, apply=True, yes=True)
    assert outcome.exit_code == 1
    assert codes(outcome) == ["sister-not-admitted"]
    assert "violates PodSecurity" in outcome.text
    assert all(dry_run for _, dry_run, _ in server.made)


def test_services_that_cannot_be_listed_leave_nothing_proven(
    server: CreatingServer, tmp_path: Path
) -> None:
    server.denied = frozenset({"list services"})
    assert codes(run(tmp_path)) == ["sister-unproven"]


def test_a_missing_right_on_another_kind_is_said(server: CreatingServer, tmp_path: Path) -> None:
    server.denied = frozenset({"list networkpolicies"})
    outcome = run(tmp_path)
    assert outcome.exit_code == 0
    assert "sister-unread" in outcome.text


def test_a_target_that_is_gone_is_an_error_with_its_name(
    server: CreatingServer, tmp_path: Path
) -> None:
    server.objects.clear()
    with pytest.raises(ClusterError, match="chat"):
        run(tmp_path)
