"""Captures while the network, the namespace or another capture get in the way."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from solscope.capture.execution import collect, patience, scripts
from solscope.capture.execution.patience import Patient
from solscope.capture.execution.server import SIDECAR, Sister
from solscope.errors import CaptureError
from solscope.evidence import bundle as bundles
from solscope.evidence.redaction import Redactor
from solscope.flows import capture
from solscope.flows.world import World
from solscope.model.evidence import BundleSource
from tests import captures
from tests.cluster.test_capture import SHELL, Site, site  # noqa: F401

pytestmark = [pytest.mark.cluster, pytest.mark.capture]


def at(step: str, site: Site, action: object) -> World:  # noqa: F811
    """A world that does something when a step begins."""

    def say(text: str) -> None:
        site.said.append(text)
        if text == step and callable(action):
            action()

    return World(say=say)


def test_a_cut_stream_and_an_overloaded_server_are_waited_out(site: Site) -> None:  # noqa: F811
    site.deploy()
    faults = site.cluster.faults

    def hurt() -> None:
        faults.add("status", method="GET", path="/pods$", code=500, times=2)
        faults.add("drop", method="GET", path="/log$", times=2)

    def cut() -> None:
        faults.add("cut", path="/exec$", query="tail", after_bytes=1500, times=2)

    def say(text: str) -> None:
        if text == "warm-up":
            hurt()
        if text == "collect":
            cut()

    outcome = capture.run(capture.CaptureRequest(**site.options()), World(say=say))
    assert outcome.exit_code == 0, outcome.text
    assert "cut" in {kind for kind, _, _ in faults.hits}
    (report,) = (site.bundle / "ncu-profiles").glob("*.ncu-rep")
    assert report.read_bytes() == site.report.read_bytes()
    assert site.left() == []


def test_sixty_four_mebibytes_come_home_through_ten_cuts(
    site: Site,  # noqa: F811
    tmp_path: Path,
) -> None:
    size, chance = 64 << 20, random.Random(5)
    mount = {"name": "results", "mountPath": scripts.RESULTS}
    container = {"name": SIDECAR, "image": "example.com/tools:1", "volumeMounts": [mount]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "holder", "namespace": site.namespace},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "results", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    kubectl = site.cluster.kubectl
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    kubectl("-n", site.namespace, "wait", "pod/holder", "--for=condition=Ready", "--timeout=120s")
    make = f"head -c {size} /dev/urandom >{scripts.RESULTS}/big.ncu-rep"
    kubectl("-n", site.namespace, "exec", "holder", "-c", SIDECAR, "--", "sh", "-c", make)
    cluster = Patient(World().cluster(None, site.namespace))
    sister = Sister(cluster=cluster, settings=captures.a_capture_settings(), pod="holder")
    (remote,) = collect.index(sister)
    assert remote.size_bytes == size
    for _ in range(10):
        cut_at = chance.randrange(1, collect.CHUNK_BYTES)
        site.cluster.faults.add("cut", path="/exec$", query="tail", after_bytes=cut_at)
    redactor = Redactor(lambda text: text, lambda _: False)
    source = BundleSource(experiment="x", family="engine")
    bundle = bundles.init(tmp_path / "b", source, redactor, lambda: datetime.now(UTC))
    file = collect.fetch(sister, remote, bundle, lambda _: None)
    assert [kind for kind, _, _ in site.cluster.faults.hits].count("cut") >= 10
    home = bundle.folder / file.artifact.path
    assert home.stat().st_size == size
    assert hashlib.sha256(home.read_bytes()).hexdigest() == remote.sha256


def test_a_network_that_stays_away_is_told_and_the_run_gone_on_with(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 1.0)
    site.deploy()
    world = at("profile", site, lambda: site.cluster.faults.add("drop", path="", times=10_000))
    with pytest.raises(CaptureError) as caught:
        capture.run(capture.CaptureRequest(**site.options(cleanup_limit=8.0)), world)
    assert "everything made is deleted" not in str(caught.value)
    assert site.steps()["cleanup"] is False
    site.cluster.faults.clear()
    assert site.left()
    outcome = site.run(resume=site.bundle)
    assert outcome.exit_code == 0, outcome.text
    assert site.left() == []


def test_a_context_that_the_user_switches_meanwhile_changes_nothing(site: Site) -> None:  # noqa: F811
    site.deploy()
    site.cluster.add_user("nobody")

    def switch() -> None:
        site.cluster.kubectl("config", "use-context", "nobody")

    world = at("create", site, switch)
    try:
        outcome = capture.run(capture.CaptureRequest(**site.options()), world)
    finally:
        site.cluster.kubeconfig()
    assert outcome.exit_code == 0
    assert site.left() == []


def test_a_namespace_that_is_deleted_meanwhile_ends_the_capture(site: Site) -> None:  # noqa: F811
    site.deploy()

    def delete() -> None:
        site.cluster.kubectl("delete", "namespace", site.namespace, "--wait=false")

    world = at("warm-up", site, delete)
    with pytest.raises(CaptureError):
        capture.run(capture.CaptureRequest(**site.options()), world)
    site.cluster.until(lambda: not site.left())
    site.cluster.make_namespace(site.namespace)


def test_a_copy_that_its_node_evicts_ends_the_capture_with_the_reason(site: Site) -> None:  # noqa: F811
    site.deploy()

    def evict() -> None:
        listed = site.cluster.kubectl(
            "-n", site.namespace, "get", "pods", "-l", "experiment", "-o", "json"
        )
        (pod,) = json.loads(listed.stdout)["items"]
        node = site.cluster.node
        assert node is not None
        node.evict(pod, "The node was low on resource: ephemeral-storage.")

    world = at("warm-up", site, evict)
    options = site.options(server_command=SHELL.format("STANDIN_TOKEN_S=0.2"))
    with pytest.raises(CaptureError) as caught:
        capture.run(capture.CaptureRequest(**options), world)
    assert "Evicted: The node was low on resource" in str(caught.value)
    assert "give the sister more room" in str(caught.value.hint)
    assert site.left() == []


def test_two_captures_at_once_do_not_meet(site: Site) -> None:  # noqa: F811
    site.deploy()
    codes: list[int] = []

    def one(name: str) -> None:
        options = site.options(output=site.folder / name)
        codes.append(capture.run(capture.CaptureRequest(**options), World()).exit_code)

    threads = [threading.Thread(target=one, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    assert site.left() == []


def test_an_experiment_in_use_is_refused_and_left_alone(site: Site) -> None:  # noqa: F811
    site.deploy()
    refused: list[str] = []

    def again() -> None:
        options = site.options(experiment="mine", output=site.folder / "second")
        with pytest.raises(CaptureError) as caught:
            capture.run(capture.CaptureRequest(**options), World())
        refused.append(str(caught.value))

    world = at("warm-up", site, again)
    outcome = capture.run(capture.CaptureRequest(**site.options(experiment="mine")), world)
    assert "the experiment has objects already: Job/" in refused[0]
    assert outcome.exit_code == 0


def test_a_full_disk_is_told_and_nothing_is_left_in_the_cluster(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from solscope.evidence import files

    site.deploy()
    before = files.write

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    world = at("collect", site, lambda: monkeypatch.setattr(files, "write", full))
    with pytest.raises(CaptureError, match="No space left on device"):
        capture.run(capture.CaptureRequest(**site.options()), world)
    monkeypatch.setattr(files, "write", before)
    assert site.left() == []


def test_a_second_ncu_attaches_before_the_server_is_waited_for(site: Site) -> None:  # noqa: F811
    path = captures.an_attach_plan(site.folder, site.report)
    site.deploy()
    outcome = site.capture(plan=path)
    assert outcome.exit_code == 0, outcome.text
    steps = list(site.steps())
    assert steps.index("attach") < steps.index("ready")
    assert "==PROF== Report:" in (site.bundle / "logs/ncu-attach.log").read_text()
    assert site.left() == []
