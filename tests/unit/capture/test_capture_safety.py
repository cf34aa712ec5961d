"""A run that is disturbed at a bad moment: nothing stays behind, and nobody else is touched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests import builder, captures, sisters
from tests.fakes.cluster import FakeCluster

from solscope.capture.execution import (
    cleanup,
    collect,
    pods,
    production,
    scripts,
    server,
    workload,
)
from solscope.capture.execution.journal import Journal
from solscope.capture.execution.run import Run
from solscope.capture.execution.server import Sister
from solscope.capture.execution.spelling import Speller
from solscope.capture.execution.window import Capture
from solscope.cli import commands
from solscope.cluster.port import ExecResult, Forbidden
from solscope.cluster.secrecy import is_secret_name, masked
from solscope.errors import CaptureError, UsageError
from solscope.evidence import bundle as bundles
from solscope.evidence import files, receipts, sealing
from solscope.evidence.redaction import Redactor
from solscope.evidence.running import Finished
from solscope.flows import capture
from solscope.flows.capture import building, reading
from solscope.flows.world import World
from solscope.model.evidence import BundleSource
from solscope.model.plan import Window

MARKED = {"experiment": "x", "solscope-sister": "1"}


def now() -> datetime:
    return datetime.now(UTC)


def a_bundle(folder: Path) -> bundles.Bundle:
    source = BundleSource(experiment="x", family="engine")
    return bundles.init(folder, source, Redactor(masked, is_secret_name), now)


def an_object(kind: str, name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "prod", "uid": name, "labels": labels}
    return {"kind": kind, "metadata": metadata}


def a_cluster(*more: dict[str, Any], **options: Any) -> FakeCluster:
    engine = {**an_object("Deployment", "engine"), "spec": {"replicas": 1}}
    return FakeCluster([engine, *more], namespace="prod", **options)


class Disturbed(Run):
    """A run that makes its object, and is then disturbed by ``disturb``."""

    disturb: Callable[[], None]

    def capture(self, rehearse: Any, admit: Any, inspect: Any) -> None:
        step = self.journal.once
        step("production-before", ("kubectl", "get"), self._before)
        step("create", ("kubectl", "create"), lambda: {"made": [self._one()]})
        type(self).disturb()

    def _one(self) -> str:
        self.cluster.create(an_object("Job", "s", **MARKED))
        return "Job/s"


def a_run(folder: Path, cluster: FakeCluster, disturb: Callable[[], None], say: Any = None) -> Run:
    settings = replace(captures.a_capture_settings(), output=str(folder))
    bundle = a_bundle(folder)
    bundle.write(building.SETTINGS, "{}")
    said = say or (lambda _: None)
    sister = sisters.a_sister(sisters.a_deployment(sisters.a_container()))
    plan = sisters.a_plan()
    kind = type("OneRun", (Disturbed,), {"disturb": staticmethod(disturb)})
    journal = Journal.opened(bundle, said, settings.run)
    run: Run = kind(cluster, plan, (sister,), settings, journal, said)
    return run


def jobs(cluster: FakeCluster) -> list[str]:
    return [o["metadata"]["name"] for o in cluster.objects if o["kind"] == "Job"]


def conclude(made: Run) -> None:
    request = capture.CaptureRequest(resume=Path(made.settings.output))
    capture._conclude(made, request, World())


# -- what was made is removed, whatever happens ----------------------------------------------------


def test_what_was_made_is_removed_though_its_receipt_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = a_cluster()
    real = bundles.Bundle.record

    def full(self: bundles.Bundle, step: str, *rest: Any) -> Any:
        if step == "create":
            raise OSError(28, "No space left on device")
        return real(self, step, *rest)

    monkeypatch.setattr(bundles.Bundle, "record", full)
    with pytest.raises(CaptureError, match="receipt of create cannot be written"):
        conclude(a_run(tmp_path / "b", cluster, lambda: None))
    assert jobs(cluster) == []


def test_an_interruption_while_the_receipt_is_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = a_cluster()
    real = bundles.Bundle.record

    def interrupted(self: bundles.Bundle, step: str, *rest: Any) -> Any:
        if step == "create":
            raise KeyboardInterrupt
        return real(self, step, *rest)

    monkeypatch.setattr(bundles.Bundle, "record", interrupted)
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        conclude(a_run(tmp_path / "b", cluster, lambda: None, said.append))
    assert jobs(cluster) == []
    assert said[-1] == f"ended, what was found is in {tmp_path / 'b'}; everything made is deleted"


def fail() -> None:
    raise CaptureError("something failed")


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_diagnosis_that_breaks_does_not_keep_the_clean_up_from_coming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Run) -> str:
        raise ValueError("a log like no other")

    monkeypatch.setattr(reading, "diagnose", broken)
    cluster = a_cluster()
    with pytest.raises(CaptureError) as caught:
        conclude(a_run(tmp_path / "b", cluster, fail))
    assert jobs(cluster) == []
    assert "something failed" in str(caught.value)
    assert "could not be read (ValueError: a log like no other)" in str(caught.value)


def test_a_second_interruption_says_how_to_remove_what_is_left(tmp_path: Path) -> None:
    class Waiting(FakeCluster):
        def delete(self, kind: str, name: str, **_: Any) -> None:
            raise KeyboardInterrupt

    cluster = Waiting(a_cluster().objects, namespace="prod")
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        conclude(a_run(tmp_path / "b", cluster, interrupt, said.append))
    assert said[-1].startswith("interrupted before everything was removed; next: ")
    assert said[-1].endswith("solscope capture --cleanup x -n prod --yes")


def test_a_login_that_ends_meanwhile_leaves_the_way_to_go_on(tmp_path: Path) -> None:
    class Expired(FakeCluster):
        def list(self, kind: str, **_: Any) -> Any:
            raise Forbidden("the cluster does not know who you are (401)", right="a valid login")

    cluster = Expired(a_cluster().objects, namespace="prod")
    with pytest.raises(CaptureError) as caught:
        conclude(a_run(tmp_path / "b", cluster, fail))
    said = str(caught.value)
    assert "the copy may still be there" in said
    assert f"solscope capture --resume {tmp_path / 'b'}" in said
    assert "solscope capture --cleanup x -n prod --yes" in said
    assert "everything made is deleted" not in said


def test_a_context_that_leads_to_another_cluster_by_now_is_no_proof(tmp_path: Path) -> None:
    # A login has rewritten it: there is an `engine` there, too, and no copy.
    cluster = a_cluster()
    here = list(cluster.objects)

    def switch() -> None:
        here.extend(item for item in cluster.objects if item["kind"] == "Job")
        cluster.objects[:] = [{**here[0], "metadata": {**here[0]["metadata"], "uid": "other"}}]
        fail()

    made = a_run(tmp_path / "b", cluster, switch)
    with pytest.raises(CaptureError, match="may still run in another cluster") as caught:
        conclude(made)
    assert "everything made is deleted" not in str(caught.value)
    assert made.is_elsewhere
    cluster.objects[:] = here
    assert not made.is_elsewhere


def test_a_workload_made_anew_meanwhile_does_not_keep_the_copy(tmp_path: Path) -> None:
    cluster = a_cluster()

    def reinstall() -> None:
        metadata = {**cluster.objects[0]["metadata"], "uid": "new"}
        cluster.objects[0] = {**cluster.objects[0], "metadata": metadata}
        fail()

    with pytest.raises(CaptureError, match="everything made is deleted"):
        conclude(a_run(tmp_path / "b", cluster, reinstall))
    assert jobs(cluster) == []


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_the_end_of_the_terminal_ends_a_run_as_an_interruption_does(
    tmp_path: Path, name: str
) -> None:
    cluster = a_cluster()
    before = signal.getsignal(signal.Signals[name])
    with pytest.raises(KeyboardInterrupt):
        conclude(a_run(tmp_path / "b", cluster, lambda: signal.raise_signal(signal.Signals[name])))
    assert jobs(cluster) == []
    assert signal.getsignal(signal.Signals[name]) is before


def test_a_run_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    def hang_up() -> None:
        signal.raise_signal(signal.SIGHUP)
        fail()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.raises(CaptureError, match="something failed"):
            conclude(a_run(tmp_path / "b", a_cluster(), hang_up))
    finally:
        signal.signal(signal.SIGHUP, before)


def test_progress_that_nobody_reads_any_more_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr("sys.stderr", pipe)
        commands._say("cleanup")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)


# -- a bundle belongs to one run at a time ---------------------------------------------------------


def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    cluster = a_cluster()
    made = a_run(tmp_path / "b", cluster, lambda: None)
    with files.claimed(tmp_path / "b" / "capture") as is_ours:
        assert is_ours
        with pytest.raises(UsageError, match="a capture is at work on this bundle"):
            conclude(made)
    assert cluster.calls == []


def test_commands_of_people_are_not_taken_for_steps_of_a_run(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "b")
    done = Finished(stdout=b"{}", stderr=b"", exit_code=0)
    for step in ("inspect", "create", "cleanup"):
        bundle.record(step, ["nvidia-smi"], done, now())
    journal = Journal.opened(bundle, lambda _: None, "run-1")
    assert not journal.has("inspect")
    assert not journal.begun
    journal.take("inspect", ("solscope", "read"), lambda: {"launches": 2})
    again = Journal.opened(bundle, lambda _: None, "run-1")
    assert again.answers == {"inspect": {"launches": 2}}
    assert Journal.opened(bundle, lambda _: None, "run-2").answers == {}


def test_a_command_whose_recording_was_cut_does_not_keep_the_bundle_open(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "b")
    Journal.opened(bundle, lambda _: None, "r").take("rights", ("kubectl",), dict)
    # A kill between the first of the four files and the last.
    for kind in ("cmd", "stdout"):
        (bundle.folder / f"commands/02-create.{kind}").write_text("")
    journal = Journal.opened(bundle, lambda _: None, "r")
    journal.take("create", ("kubectl", "create"), dict)
    assert [r.step for r in receipts.read(bundle.folder)] == ["01-rights", "02-create"]
    sealing.seal(bundle.folder, now())
    assert sealing.verify(bundle.folder)[1] == ()


# -- others are left alone -------------------------------------------------------------------------


def test_a_pod_of_somebody_else_with_the_same_experiment_is_not_the_sisters() -> None:
    mine = an_object("Pod", "sister-1", **MARKED)
    other = an_object("Pod", "production-1", experiment="x")
    other["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z"
    assert pods.find(a_cluster(mine, other), "x") == mine
    assert pods.find(a_cluster(other), "x") is None


def test_kinds_that_the_user_may_not_list_are_told_and_end_nothing() -> None:
    job = an_object("Job", "s", **MARKED)
    denied = ("list deployments", "list configmaps", "list replicasets")
    told = cleanup.remove(a_cluster(job, denied=denied), "x", 5.0)
    assert told["removed"] == {"Job/s": "s"}
    assert told["listed"] == "jobs, pods with experiment=x"
    assert told["not_listed"] == ["deployments", "configmaps", "replicasets"]
    with pytest.raises(Forbidden, match="list pods"):
        cleanup.remove(a_cluster(job, denied=("list pods",)), "x", 5.0)


@pytest.mark.parametrize(
    ("selector", "asked"),
    [
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "tier", "operator": "In", "values": ["x", "y"]},
                    {"key": "old", "operator": "DoesNotExist"},
                    {"key": "kind", "operator": "NotIn", "values": ["z"]},
                    {"key": "app", "operator": "Exists"},
                ],
            },
            "a=1,tier in (x,y),!old,kind notin (z),app",
        ),
    ],
)
def test_every_pod_of_production_is_watched(selector: dict[str, Any], asked: str) -> None:
    class Asked(FakeCluster):
        def list(self, kind: str, *, labels: str | None = None, **_: Any) -> Any:
            self.calls.append(str(labels))
            return (an_object("Pod", "engine-1"),)

    engine = {**an_object("Deployment", "engine"), "spec": {"selector": selector}}
    cluster = Asked([engine], namespace="prod")
    state = production.read(cluster, "deploy/engine")
    assert cluster.calls[-1] == asked
    assert [pod.name for pod in state.pods] == ["engine-1"]


def test_production_that_cannot_grow_because_of_the_copy_ends_the_capture() -> None:
    # An autoscaler or a roll-out wants a pod, and the quota that the copy uses up refuses it: no
    # pod is new, gone or unready, and yet production suffers.
    engine: dict[str, Any] = {**an_object("Deployment", "engine"), "spec": {"replicas": 2}}
    cluster = FakeCluster([engine], namespace="prod")
    before = production.read(cluster, "deploy/engine")
    engine["spec"]["replicas"] = 3
    assert production.disturbances(before, production.read(cluster, "deploy/engine")) == ()
    said = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1"
    failure = {"type": "ReplicaFailure", "status": "True", "message": said}
    engine["status"] = {"conditions": [failure]}
    after = production.read(cluster, "deploy/engine")
    assert production.disturbances(before, after) == (f"a further pod of it is refused: {said}",)
    # What was so before is not the copy's doing.
    assert production.disturbances(after, after) == ()


# -- what a wait says ------------------------------------------------------------------------------


def test_a_wait_for_a_gpu_says_so_and_looks_at_production_meanwhile() -> None:
    pod = an_object("Pod", "s-1", **MARKED)
    full = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: no GPU"}
    pod["status"] = {"conditions": [full]}
    said: list[str] = []

    def tick(text: str) -> None:
        said.append(text)
        raise CaptureError("production changed meanwhile")

    with pytest.raises(CaptureError, match="production changed meanwhile"):
        pods.wait_running(a_cluster(pod), "x", ("Job", "s"), "vllm", 60.0, tick, print)
    assert said == ["start: no node takes it: 0/1 nodes: no GPU"]


def test_a_volume_that_is_not_mounted_is_named_at_the_limit() -> None:
    def event(at: str, kind: str, message: str) -> dict[str, Any]:
        body = {**an_object("Event", at), "type": kind, "lastTimestamp": at, "message": message}
        return {**body, "reason": "FailedMount", "involvedObject": {"name": "s-1"}}

    pod = an_object("Pod", "s-1", **MARKED)
    told = [
        event("2026-01-01T00:00:02Z", "Warning", "the sidecar container was not injected"),
        event("2026-01-01T00:00:01Z", "Warning", "timed out waiting"),
        event("2026-01-01T00:00:03Z", "Normal", "scheduled"),
    ]
    with pytest.raises(CaptureError, match="FailedMount: the sidecar container was not injected"):
        pods.wait_running(a_cluster(pod, *told), "x", ("Job", "s"), "vllm", 0.0, print, print)


def pulling(reason: str, message: str) -> dict[str, Any]:
    pod = an_object("Pod", "s-1", **MARKED)
    state = {"waiting": {"reason": reason, "message": message}}
    pod["status"] = {"initContainerStatuses": [{"name": "solscope-tools", "state": state}]}
    return pod


PULL = 'failed to pull and unpack image "example.com/ncu:1": failed to resolve reference: '


@pytest.mark.parametrize(
    "message",
    [
        PULL + "dial tcp 192.0.2.1:443: i/o timeout",
        PULL + "unexpected status from HEAD request: 503 Service Unavailable",
        PULL + "toomanyrequests: You have reached your pull rate limit",
        "rpc error: code = Unknown desc = context deadline exceeded",
        'Back-off pulling image "example.com/ncu:1"',
        'Back-off pulling image "example.com/ncu:1": ErrImagePull: net/http: TLS handshake timeout',
        "",
    ],
)
def test_a_pull_that_the_node_tries_again_is_waited_for(message: str) -> None:
    reason = "ImagePullBackOff" if "Back-off" in message or not message else "ErrImagePull"
    said: list[str] = []

    def tick(text: str) -> None:
        said.append(text)
        raise CaptureError("enough")

    cluster = a_cluster(pulling(reason, message))
    with pytest.raises(CaptureError, match="enough"):
        pods.wait_running(cluster, "x", ("Job", "s"), "vllm", 60.0, tick, print)
    assert said == [f"start: container solscope-tools: {reason}: {message or 'no message'}"]


def test_a_registry_that_stays_away_is_not_waited_for_as_long_as_a_gpu_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pods, "PULL_PATIENCE_S", 0.2)
    monkeypatch.setattr(pods, "POLL_S", 0.01)
    said: list[str] = []
    cluster = a_cluster(pulling("ErrImagePull", PULL + "i/o timeout"))
    with pytest.raises(CaptureError, match=r"ErrImagePull.*i/o timeout"):
        pods.wait_running(cluster, "x", ("Job", "s"), "vllm", 60.0, said.append, print)
    assert len(said) > 1


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ErrImagePull", PULL + "example.com/ncu:1: not found"),
        ("ErrImagePull", PULL + "401 Unauthorized"),
        ("ErrImagePull", PULL + "dial tcp: lookup example.com: no such host"),
        ("ErrImagePull", PULL + "x509: certificate signed by unknown authority"),
        (
            "ImagePullBackOff",
            'Back-off pulling image "example.com/ncu:1": ErrImagePull: manifest unknown',
        ),
        ("InvalidImageName", 'Failed to apply default image tag "A B": invalid reference format'),
        ("ErrImageNeverPull", "Container image is not present with pull policy of Never"),
    ],
)
def test_a_pull_that_no_wait_can_help_ends_at_once(reason: str, message: str) -> None:
    cluster = a_cluster(pulling(reason, message))
    with pytest.raises(CaptureError) as caught:
        pods.wait_running(cluster, "x", ("Job", "s"), "vllm", 60.0, print, print)
    assert str(caught.value).startswith(f"Job/s: container solscope-tools: {reason}: {message}")
    assert "--tools-image" in str(caught.value.hint)


def test_a_job_that_a_queue_holds_back_says_so() -> None:
    job = an_object("Job", "s", **MARKED)
    job["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}
    with pytest.raises(CaptureError, match="the Job is suspended"):
        pods.wait_running(a_cluster(job), "x", ("Job", "s"), "vllm", 0.0, print, print)


def test_a_copy_that_met_its_deadline_is_not_called_deleted_by_somebody() -> None:
    job = an_object("Job", "s", **MARKED)
    late = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    job["status"] = {"conditions": [late]}
    with pytest.raises(CaptureError, match="its deadline has passed") as caught:
        pods.require(a_cluster(job), "x", ("Job", "s"))
    assert "--deadline" in str(caught.value.hint)
    with pytest.raises(CaptureError, match="pod is gone"):
        pods.require(a_cluster(), "x", ("Job", "s"))


def test_the_deadline_of_the_copy_is_later_than_every_limit() -> None:
    request = capture.CaptureRequest(ready_limit=5000.0, window_limit=4000.0)
    assert building._deadline(request, sisters.a_plan()) > 9000 + 600 + 600 + 300
    short = capture.CaptureRequest(
        pending_limit=1.0, ready_limit=1.0, warm_up_limit=1.0, window_limit=1.0, finish_limit=1.0
    )
    assert building._deadline(short, sisters.a_plan()) == 3600


# -- the load --------------------------------------------------------------------------------------

ROUND = b'{"seconds": 1.0, "tokens": 8, "requests": 2, "failed": 0, "error": null}\n'


def load_that_says(stdout: bytes, stderr: str = "", exit_code: int = 0) -> workload.Load:
    class Told(FakeCluster):
        def exec(self, *_: Any, **__: Any) -> ExecResult:
            return ExecResult(stdout=stdout, stderr=stderr, exit_code=exit_code)

    settings = captures.a_capture_settings()
    return workload.Load(sister=Sister(cluster=Told([]), settings=settings, pod="p"), name="w")


def test_an_answer_of_the_load_that_was_cut_inside_a_line_is_read_up_to_it() -> None:
    found, runs = load_that_says(ROUND + ROUND[:20], "unexpected EOF", 1).batches()
    assert (len(found), runs) == (1, True)


def test_a_load_that_was_killed_is_told_and_one_that_ended_is_not() -> None:
    assert load_that_says(ROUND + b'{"ended": true}\n{"dead": true}\n').batches()[1] is False
    with pytest.raises(CaptureError, match="what sends the requests has ended: MemoryError"):
        load_that_says(ROUND + b'{"dead": true}\n', "Traceback\nMemoryError\n").batches()


def test_a_load_has_ended_when_its_process_has_though_nobody_waits_for_it(tmp_path: Path) -> None:
    def told() -> list[str]:
        words = ["sh", "-c", scripts.READ_LOAD, "sh", str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [next(iter(json.loads(line))) for line in done.stdout.splitlines()]

    assert told() == ["dead"]
    (tmp_path / "batches").write_bytes(ROUND)
    with subprocess.Popen(["sleep", "60"]) as process:
        (tmp_path / "pid").write_text(f"{process.pid}\n")
        assert told() == ["seconds"]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert told() == ["seconds", "dead"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cleanup": "a,b=c", "namespace": "x"}, "'a,b=c' cannot be a label's value"),
        ({"cleanup": "", "namespace": "x"}, "'' cannot be a label's value"),
        ({"plan": Path("p"), "ready_limit": -1.0}, "--ready-limit -1 is no time to wait"),
        ({"plan": Path("p"), "window_limit": float("inf")}, "--window-limit inf is no time"),
        ({"plan": Path("p"), "finish_limit": float("nan")}, "--finish-limit nan is no time"),
        ({"plan": Path("p"), "deadline": 0}, "--deadline 0 is no time"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_cluster_is_asked(
    options: dict[str, Any], said: str
) -> None:
    asked: list[Any] = []
    world = World(cluster=lambda *given: asked.append(given) or a_cluster())
    with pytest.raises(UsageError, match=said):
        capture.run(capture.CaptureRequest(**options), world)
    assert asked == []


# -- a pod that goes, a server that is gone --------------------------------------------------------


def a_window(cluster: FakeCluster) -> Capture:
    sister = Sister(cluster=cluster, settings=captures.a_capture_settings(), pod="s-1")
    plan = sisters.a_plan(window=Window.ENGINE_PROFILER)
    return Capture(sister=sister, plan=plan, tick=lambda _: None)


def test_a_pod_that_is_not_found_is_said_to_be_gone() -> None:
    for act in (lambda s: s.exec(("true",)), lambda s: s.log()):
        sister = a_window(a_cluster()).sister
        with pytest.raises(CaptureError, match="the sister's pod is gone"):
            act(sister)


def test_a_server_that_ended_has_closed_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(FakeCluster):
        def exec(self, *_: Any, **__: Any) -> ExecResult:
            said = "cannot exec in a stopped container"
            return ExecResult(stdout=b"", stderr=said, exit_code=1, failed_to_start=True)

    monkeypatch.setattr(server, "_END_TOLD_S", 0.0)
    pod = an_object("Pod", "s-1", **MARKED)
    closed = a_window(Ended([pod], namespace="prod")).close()
    assert closed["status"] is None
    assert "container vllm has ended" in closed["because"]


def test_a_probe_that_does_not_end_leaves_the_answer_to_the_first_launch() -> None:
    done = ExecResult(stdout=b"==PROF== waiting\n", stderr="", exit_code=scripts.BOUNDED_OUT)
    asked: list[str] = []

    class Asked(FakeCluster):
        def exec(self, pod: str, container: str, command: Any, **_: Any) -> ExecResult:
            asked.extend(command)
            return done

    window = a_window(Asked([an_object("Pod", "s-1")], namespace="prod"))
    told = window.probe("ncu", lambda _: None)
    # Killed at its limit, it must not leave the GPU's clocks locked.
    assert asked[asked.index("--clock-control") + 1] == "none"
    assert told["counters"] == "undecided"
    assert "did not end within 100 s" in told["because"]


@pytest.mark.skipif(shutil.which("timeout") is None, reason="no timeout on this machine")
def test_a_bounded_command_is_ended_and_another_keeps_its_answer() -> None:
    def run(limit: str, *command: str) -> tuple[int, str]:
        words = ["sh", "-c", scripts.BOUNDED, "sh", limit, *command]
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode, done.stdout

    assert run("60", "sh", "-c", "echo said; exit 3") == (3, "said\n")
    assert run("0.2", "sleep", "600")[0] == scripts.BOUNDED_OUT


def test_commands_that_are_shown_name_the_sister_and_nothing_else_of_the_experiment() -> None:
    say = Speller(captures.a_capture_settings())
    for words in (say.pods(), say.labelled("delete", "jobs")):
        assert words[-2:] == ("-l", "experiment=x,solscope-sister")


def test_a_list_of_results_whose_stream_is_cut_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = f"{'0' * 64} 12 r.ncu-rep\n".encode()
    answers = [(whole[:20], 1), (b"", 1), (whole, 0)]

    class Cut(FakeCluster):
        def exec(self, *_: Any, **__: Any) -> ExecResult:
            stdout, code = answers.pop(0)
            return ExecResult(stdout=stdout, stderr="unexpected EOF", exit_code=code)

    monkeypatch.setattr(server, "_PAUSES_S", (0.0, 0.0, 0.0))
    (found,) = collect.index(a_window(Cut([], namespace="prod")).sister)
    assert (found.name, found.size_bytes) == ("r.ncu-rep", 12)
    answers = [(b"", 1)] * 4
    with pytest.raises(CaptureError, match="cannot be listed: unexpected EOF"):
        collect.index(a_window(Cut([], namespace="prod")).sister)


def test_a_restart_of_a_sidecar_of_production_counts() -> None:
    pod = an_object("Pod", "p")
    pod["status"] = {
        "containerStatuses": [{"name": "a", "restartCount": 1}],
        "initContainerStatuses": [{"name": "b", "restartCount": 2}],
    }
    (state,) = production.read(FakeCluster([pod], namespace="prod"), "pod/p").pods
    assert state.restarts == 3


def test_a_clean_up_says_what_it_could_not_look_at() -> None:
    job = an_object("Job", "s", **MARKED)
    cluster = a_cluster(job, denied=("list deployments",))
    request = capture.CaptureRequest(cleanup="x", namespace="prod", yes=True)
    outcome = capture.run(request, World(cluster=lambda *_: cluster))
    assert jobs(cluster) == []
    assert "removed, nothing is left\n  Job/s\n" in outcome.text
    assert "you may not list deployments" in outcome.text


def test_a_transfer_that_was_cut_is_not_called_a_report_that_was_cut(tmp_path: Path) -> None:
    made = a_run(tmp_path / "b", a_cluster(), fail)
    report = builder.report([builder.Kernel("k", metrics={"gpu__time_duration.sum": 1000})])
    folder = tmp_path / "b" / "ncu-profiles"
    (folder / f"{files.PART}r.ncu-rep").write_bytes(report[: len(report) // 2])
    assert reading.diagnose(made) is None
    (folder / "r.ncu-rep").write_bytes(report[: len(report) // 2])
    assert "cut" in str(reading.diagnose(made))
