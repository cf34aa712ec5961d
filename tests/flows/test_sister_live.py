"""The sister of a live workload: read through the port, rehearsed, created whole or not at all."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests import corpus
from tests.sisters import a_container, a_deployment, a_plan, an_object, read_manifest

from solscope.capture import planfile
from solscope.cluster.port import Conflict, ExecResult, Forbidden, NotFound, Refused, UnknownKind
from solscope.errors import ClusterError, UsageError
from solscope.flows import sister as flow
from solscope.flows.world import Outcome, World
from solscope.model.sister import Sister

LIVE = corpus.SHARED / "manifests" / "live"
KINDS = {"deploy": "Deployment", "po": "Pod", "pod": "Pod", "lws": "LeaderWorkerSet"}
KINDS["configmaps"] = "ConfigMap"


class StubCluster:
    """Objects in memory behind the port's reading and creating calls."""

    context = "test"

    def __init__(
        self,
        objects: Iterable[Mapping[str, Any]],
        *,
        namespace: str = "prod",
        forbidden: Iterable[str] = (),
        unknown: Iterable[str] = (),
        refuse: Mapping[str, ClusterError] | None = None,
    ) -> None:
        self.objects = list(objects)
        self.namespace = namespace
        self.forbidden, self.unknown = set(forbidden), set(unknown)
        self.refuse = dict(refuse or {})
        self.cmdline = b""
        self.version = b'{"major": "1", "minor": "36"}'
        self.calls: list[tuple[str, str]] = []
        self.webhook: Callable[[dict[str, Any]], None] = lambda pod: None
        self.job_webhook: Callable[[dict[str, Any]], None] = lambda job: None
        self._uids = (f"uid-{number}" for number in itertools.count(1))

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Mapping[str, Any]:
        for item in self.objects:
            if item["kind"] == KINDS.get(kind, kind) and item["metadata"]["name"] == name:
                return item
        raise NotFound(f"{kind} {name!r} not found")

    def list(
        self, kind: str, *, namespace: str | None = None, everywhere: bool = False, **_: Any
    ) -> tuple[Mapping[str, Any], ...]:
        plural = kind.split(".", 1)[0]
        if plural in self.forbidden:
            raise Forbidden("forbidden", right=f"list {plural} in {self.namespace}")
        if plural in self.unknown or kind.endswith("azmonitoring.coreos.com"):
            raise UnknownKind(f"no kind {plural}")
        return tuple(item for item in self.objects if f"{item['kind'].lower()}s" == plural)

    def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Mapping[str, Any]:
        self.calls.append(("rehearse" if dry_run else "create", obj["kind"]))
        error = self.refuse.get(f"{'rehearse' if dry_run else 'create'} {obj['kind']}")
        if error is not None:
            raise error
        made = copy.deepcopy({**obj, "metadata": {**obj["metadata"], "uid": next(self._uids)}})
        if obj["kind"] == "Pod":
            self.webhook(made)
        if obj["kind"] == "Job":
            self.job_webhook(made)
        return made

    def raw(self, path: str) -> bytes:
        assert path == "/version"
        return self.version

    def exec(self, pod: str, container: str, command: Any, **_: Any) -> ExecResult:
        self.calls.append(("exec", pod))
        return ExecResult(stdout=self.cmdline, stderr="", exit_code=0)

    def delete(
        self, kind: str, name: str, *, uid: str | None = None, namespace: str | None = None
    ) -> None:
        assert uid is not None
        self.calls.append(("delete", kind))


def run(folder: Path, cluster: StubCluster, workload: str = "deploy/chat", **more: Any) -> Outcome:
    plan = folder / "plan.json"
    plan.write_bytes(planfile.to_json(more.pop("with_plan", a_plan())))
    world = World(cluster=lambda _context, _namespace: cluster)
    return flow.run(flow.SisterRequest(plan=plan, workload=workload, **more), world)


def findings(outcome: Outcome) -> list[str]:
    assert isinstance(outcome.value, Sister)
    return [item.code for item in outcome.value.findings]


SERVICE = an_object("Service", "chat", {"selector": {"app": "chat"}})


def test_reading_a_live_target_creates_nothing(tmp_path: Path) -> None:
    cluster = StubCluster([a_deployment(), SERVICE])
    outcome = run(tmp_path, cluster)
    assert outcome.exit_code == 0
    assert "Service/chat spec.selector: app=chat" in outcome.text
    assert cluster.calls == []


def test_apply_without_yes_is_a_rehearsal_that_asks_about_the_pod_first(tmp_path: Path) -> None:
    cluster = StubCluster([a_deployment(), SERVICE])
    outcome = run(tmp_path, cluster, apply=True)
    assert cluster.calls == [("rehearse", "Pod"), ("rehearse", "Job")]
    assert "rehearsed: the cluster would take it" in outcome.text


def test_apply_with_yes_creates_and_names_the_uid(tmp_path: Path) -> None:
    cluster = StubCluster([a_deployment(), SERVICE])
    outcome = run(tmp_path, cluster, apply=True, yes=True, output=tmp_path / "out")
    assert cluster.calls[-1] == ("create", "Job")
    assert "uid uid-3" in outcome.text
    assert '"uid": "uid-3"' in (tmp_path / "out" / "sister.json").read_text()


def test_yes_alone_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--yes belongs to --apply"):
        run(tmp_path, StubCluster([a_deployment()]), yes=True)


def test_a_match_is_never_created(tmp_path: Path) -> None:
    cluster = StubCluster([a_deployment(), an_object("PodMonitor", "all", {"selector": {}})])
    outcome = run(tmp_path, cluster, apply=True, yes=True)
    assert outcome.exit_code == 1
    assert cluster.calls == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused('violates PodSecurity "restricted:latest"'), "sister-not-admitted"),
        (Refused("exceeded quota: gpus"), "sister-not-admitted"),
        (Conflict("already exists"), "sister-exists"),
    ],
)
def test_what_admission_says_about_the_pod_is_the_answer(
    tmp_path: Path, error: ClusterError, code: str
) -> None:
    cluster = StubCluster([a_deployment()], refuse={"rehearse Pod": error})
    outcome = run(tmp_path, cluster, apply=True, yes=True)
    assert outcome.exit_code == 1
    assert code in findings(outcome)
    assert error.what in outcome.text
    assert ("create", "Job") not in cluster.calls


def test_half_a_sister_is_taken_back(tmp_path: Path) -> None:
    from solscope.model.plan import Strategy

    script = tmp_path / "op.py"
    script.write_text("pass\n")
    cluster = StubCluster([a_deployment()], refuse={"create Job": Refused("no more jobs")})
    with pytest.raises(Refused, match="no more jobs"):
        run(
            tmp_path,
            cluster,
            apply=True,
            yes=True,
            harness=script,
            with_plan=a_plan(strategy=Strategy.HARNESS),
        )
    assert cluster.calls[-1] == ("delete", "ConfigMap")


def test_unreadable_services_leave_nothing_proven(tmp_path: Path) -> None:
    cluster = StubCluster([a_deployment()], forbidden={"services"})
    outcome = run(tmp_path, cluster)
    assert outcome.exit_code == 1
    assert "sister-unproven" in findings(outcome)
    assert "list services in prod" in outcome.text
    assert run(tmp_path, cluster, accept=("services",)).exit_code == 0


def test_another_unreadable_kind_is_said_and_a_missing_one_is_not(tmp_path: Path) -> None:
    cluster = StubCluster(
        [a_deployment()], forbidden={"networkpolicies"}, unknown={"scaledobjects"}
    )
    outcome = run(tmp_path, cluster)
    assert outcome.exit_code == 0
    assert "sister-unread" in findings(outcome)
    assert "list networkpolicies in prod" in outcome.text
    assert "scaledobjects" not in outcome.text


@pytest.mark.parametrize("workload", ["chat", "deploy/", "deploy"])
def test_a_target_without_kind_or_name_is_asked_for(tmp_path: Path, workload: str) -> None:
    with pytest.raises(UsageError, match="names no workload"):
        run(tmp_path, StubCluster([a_deployment()]), workload)


def test_a_target_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        run(tmp_path, StubCluster([]), "deploy/chat")


def test_a_live_pod_is_copied_from_its_recorded_template(tmp_path: Path) -> None:
    path = corpus.require(LIVE / "vllm-docs-nvidia.json")
    objects = read_manifest(path.read_text(), where=path.name)
    pod = next(item for item in objects if item["kind"] == "Pod")
    namespace = pod["metadata"]["namespace"]
    cluster = StubCluster(objects, namespace=namespace)
    outcome = run(tmp_path, cluster, f"pod/{pod['metadata']['name']}")
    assert isinstance(outcome.value, Sister)
    assert outcome.value.target == f"Deployment/mistral-7b -n {namespace}"
    spec = outcome.value.objects[-1]["spec"]["template"]["spec"]
    assert "nodeName" not in spec
    # Its volume is ReadWriteOnce, so the sister must run where the pod runs.
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": pod["spec"]["nodeName"]}


def test_a_file_can_be_applied_and_is_matched_against_the_cluster_too(tmp_path: Path) -> None:
    import yaml

    path = tmp_path / "chat.yaml"
    path.write_text(yaml.safe_dump(a_deployment()))
    cluster = StubCluster([an_object("PodMonitor", "all", {"selector": {}})])
    plan = tmp_path / "plan.json"
    plan.write_bytes(planfile.to_json(a_plan()))
    world = World(cluster=lambda _context, _namespace: cluster)
    request = flow.SisterRequest(plan=plan, file=path, apply=True, yes=True)
    outcome = flow.run(request, world)
    assert outcome.exit_code == 1
    assert "sister-not-isolated" in findings(outcome)


def test_a_command_that_only_the_image_knows_is_read_in_the_running_container(
    tmp_path: Path,
) -> None:
    target = a_deployment(a_container(command=None, args=["org/model"]))
    pod = an_object("Pod", "chat-1", {"containers": []}, status={"phase": "Running"})
    pod["metadata"]["labels"] = {"app": "chat"}
    cluster = StubCluster([target, pod])
    cluster.cmdline = b"python3\0-m\0vllm.entrypoints.openai.api_server\0org/model\0"
    assert run(tmp_path, cluster).exit_code == 1
    outcome = run(tmp_path, cluster, exec=True)
    assert isinstance(outcome.value, Sister)
    (server,) = outcome.value.objects[-1]["spec"]["template"]["spec"]["containers"]
    command = ["python3", "-m", "vllm.entrypoints.openai.api_server", "org/model"]
    assert server["args"] == [*command, "--host", "127.0.0.1", "--port", "8000"]
    assert cluster.calls == [("exec", "chat-1")]


def test_looking_inside_needs_a_live_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--exec needs a live target"):
        run(tmp_path, StubCluster([]), file=tmp_path / "x.yaml", exec=True)


@pytest.mark.parametrize(
    ("version", "tools", "refused"),
    [
        (b'{"major": "1", "minor": "28+"}', "init-container", ["sister-no-native-sidecar"]),
        (b'{"major": "1", "minor": "29"}', "init-container", []),
        (b'{"major": "1", "minor": "34+"}', "image-volume", ["sister-no-image-volume"]),
        (b'{"major": "1", "minor": "35"}', "image-volume", []),
        (b"no version", "image-volume", []),
    ],
)
def test_a_cluster_too_old_for_the_sister_is_told_from_its_version(
    tmp_path: Path, version: bytes, tools: str, refused: list[str]
) -> None:
    cluster = StubCluster([a_deployment()])
    cluster.version = version
    outcome = run(tmp_path, cluster, tools=tools, ncu="/opt/ncu")
    assert isinstance(outcome.value, Sister)
    assert [item.code for item in outcome.value.findings if item.blocks] == refused


def test_config_maps_that_the_server_has_options_from_are_read(tmp_path: Path) -> None:
    source = {"configMapRef": {"name": "more"}}
    target = a_deployment(a_container(envFrom=[source]))
    metadata = {"name": "more", "namespace": "prod"}
    config = {"kind": "ConfigMap", "metadata": metadata, "data": {"MORE": "--headless"}}
    cluster = StubCluster([target, config])
    assert "sister-options-hidden" in findings(run(tmp_path, cluster))
