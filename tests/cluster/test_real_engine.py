"""The real vLLM in the test cluster, looked at and captured: ``make cluster-vllm``."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from solscope.errors import CaptureError
from solscope.evidence import receipts, sealing
from solscope.flows import preflight
from solscope.flows.world import World
from solscope.model.capture import CaptureResult
from tests import captures
from tests.cluster import tools
from tests.cluster.fixture import Cluster
from tests.cluster.node.images import STANDIN
from tests.cluster.realengine import environment, image
from tests.cluster.test_capture import TOKEN, Requests, Site

pytestmark = [pytest.mark.cluster, pytest.mark.capture, pytest.mark.engine]

SERVE = ("vllm", "serve", image.MODEL, "--load-format", "dummy", "--enforce-eager")
START_S = 900.0
GRACE_S = 30


class RealSite(Site):
    """A namespace with the real engine in it; its limits are those of a slow start."""

    def deploy(self, *, replicas: int = 1, **env: str) -> None:
        objects = captures.production(self.namespace, self.report, replicas=replicas, **env)
        pod = objects[0]["spec"]["template"]["spec"]
        pod["terminationGracePeriodSeconds"] = GRACE_S
        (container,) = pod["containers"]
        probe = {"httpGet": {"path": "/health", "port": 8000}, "timeoutSeconds": 20}
        container |= {
            "image": f"example.com/vllm-cpu:v{environment.VERSION}",
            "command": list(SERVE),
            "args": ["--port", "8000"],
            "startupProbe": {**probe, "periodSeconds": 2, "failureThreshold": int(START_S / 2)},
            "readinessProbe": {**probe, "periodSeconds": 5},
            "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6},
        }
        self.cluster.kubectl("apply", "-f", "-", stdin=captures.documents(objects))
        status = ("rollout", "status", "deployment/engine", f"--timeout={START_S:g}s")
        self.cluster.kubectl("-n", self.namespace, *status, timeout_s=START_S + 20)

    def options(self, **options: Any) -> dict[str, Any]:
        long = {
            "isl": 64,
            "osl": 16,
            "pending_limit": 60.0,
            "ready_limit": START_S,
            "warm_up_limit": 300.0,
            "window_limit": 120.0,
            "finish_limit": 120.0,
            "cleanup_limit": 120.0,
        }
        return super().options(**{**long, **options})

    @property
    def pod(self) -> dict[str, Any]:
        """Production's one pod."""
        listed = self.cluster.kubectl(
            "-n", self.namespace, "get", "pods", "-l", "app=engine", "-o", "json"
        )
        (pod,) = json.loads(listed.stdout)["items"]
        return dict(pod)


@pytest.fixture(scope="module")
def real(cluster: Cluster) -> Iterator[RealSite]:
    """Production with the real engine, started once for this file."""
    assert environment.is_made(), "run make cluster-vllm"
    folder = Path(tempfile.mkdtemp(prefix="solscope-engine-", dir="/var/tmp"))
    folder.chmod(0o755)
    cluster.make_namespace("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOLSCOPE_TEST_TOOLS", str(tools.cache()))
        patch.setenv("SOLSCOPE_KUBECTL", str(tools.kubectl_path()))
        for name, value in cluster.environment().items():
            patch.setenv(name, value)
        site = RealSite(cluster, "real", folder)
        site.deploy()
        yield site
    cluster.kubectl("delete", "namespace", "real", "--wait=true", "--timeout=90s", timeout_s=100)
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    shutil.rmtree(folder)


# -- what the engine is, and what we say of it -----------------------------------------------------


def test_production_is_ready_through_its_probes_and_was_never_restarted(real: RealSite) -> None:
    (status,) = real.pod["status"]["containerStatuses"]
    assert (status["ready"], status["started"], status["restartCount"]) == (True, True, 0)
    listed = real.cluster.kubectl("-n", real.namespace, "get", "events", "-o", "json")
    events = json.loads(listed.stdout)["items"]
    refused = [e for e in events if e["message"].startswith("Startup probe failed")]
    # Nothing listens while it loads: the probes had to wait for it.
    assert refused


def test_the_processes_are_those_that_the_preflight_counts_on(real: RealSite) -> None:
    script = 'for d in /proc/[0-9]*; do echo "$(cat $d/stat)@$(tr "\\0" " " <$d/cmdline)"; done'
    told = real.cluster.kubectl(
        "-n", real.namespace, "exec", "deploy/engine", "--", "sh", "-c", script
    ).stdout.decode()
    rows = re.findall(r"^(\d+) \((.*)\) \S (\d+).*?@(.*?) *$", told, re.MULTILINE)
    tree = {title: (name, pid, parent) for pid, name, parent, title in rows}
    server = next(title for title, (_, pid, _) in tree.items() if pid == "1")
    assert server.endswith(" ".join((*SERVE[1:], "--port 8000")))
    name, core, parent = tree["VLLM::EngineCore"]
    assert (name, parent) == ("VLLM::EngineCor", "1")
    assert tree["VLLM::Worker"][2] == core
    # Another child than the engine's: whoever follows children must not take it for the engine.
    assert any("resource_tracker" in title for title in tree)


def test_preflight_by_exec_tells_the_truth(real: RealSite) -> None:
    request = preflight.PreflightRequest(
        target="deploy/engine", namespace=real.namespace, context="admin", exec=True
    )
    outcome = preflight.run(request, World())
    told = " ".join(outcome.text.split())
    assert outcome.exit_code == 0
    assert "engine vllm [/proc/1/cmdline (process)]" in told
    assert f"version {environment.VERSION} [GET /version]" in told
    assert f"model {image.MODEL}" in told
    assert "memory fraction 0.92 [GET /metrics, vllm:cache_config_info]" in told
    assert "is eager True" in told
    assert re.search(r"running: VLLM::EngineCore \(pid \d+\), VLLM::Worker \(pid \d+\)", told)
    assert "profiler-endpoint-off" in told
    assert "cuda-graphs" not in told
    assert "counters on gpu-node-1: not to be seen from inside" in told
    assert TOKEN not in told


@dataclass(frozen=True)
class Answer:
    """One answer of a server: code, kind of content, text."""

    code: int
    kind: str
    text: str

    @property
    def body(self) -> dict[str, Any]:
        """The answer as JSON."""
        return dict(json.loads(self.text))

    @property
    def series(self) -> dict[str, set[tuple[str, ...]]]:
        """The labels of each metric, by its name and type."""
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)", self.text, re.MULTILINE))
        found: dict[str, set[tuple[str, ...]]] = {}
        for name, labels in re.findall(r"^(vllm:\w+)\{(.*)\}", self.text, re.MULTILINE):
            if name in kinds:
                given = tuple(re.findall(r'(\w+)="', labels))
                found.setdefault(f"{name} {kinds[name]}", set()).add(given)
        return found

    def value(self, name: str) -> float:
        """The sum of a metric over its labels."""
        return sum(float(v) for v in re.findall(rf"^{name}\{{.*\}} (\S+)", self.text, re.MULTILINE))


def ask(
    url: str,
    body: object = None,
    context: ssl.SSLContext | None = None,
    kind: str = "application/json",
) -> Answer:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": kind})
    request.add_header("Authorization", "Bearer admin")
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return Answer(
                answer.status, answer.headers["Content-Type"] or "", answer.read().decode()
            )
    except urllib.error.HTTPError as refusal:
        with refusal:
            given = refusal.headers["Content-Type"] or ""
            return Answer(refusal.code, given, refusal.read().decode())


def ask_real(site: RealSite, path: str, body: object = None, **options: Any) -> Answer:
    context = ssl.create_default_context(cafile=str(site.cluster.certificate))
    service = f"/api/v1/namespaces/{site.namespace}/services/front:80/proxy{path}"
    return ask(site.cluster.url + service, body, context, **options)


@pytest.fixture
def standin() -> Iterator[str]:
    """The address of a stand-in engine with the real one's arguments."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, str(STANDIN / "engine.py"), *SERVE[1:], "--port", port]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                ask(f"{url}/health")
                break
            except OSError:
                time.sleep(0.1)
        yield url
        process.terminate()


PROMPT = {"prompt": [101, 102, 103], "max_tokens": 4, "ignore_eos": True}


def test_the_stand_in_engine_answers_as_the_real_one_does(real: RealSite, standin: str) -> None:
    asked: dict[str, object] = {
        "/health": None,
        "/ping": None,
        "/version": None,
        "/load": None,
        "/v1/models": None,
        "/nothing": None,
        "/start_profile": {},
        "/stop_profile": {},
        "/v1/completions": PROMPT,
    }
    for path, body in asked.items():
        truth, shown = ask_real(real, path, body), ask(standin + path, body)
        assert (path, shown.code) == (path, truth.code)
        if truth.text:
            assert (path, shown.kind) == (path, truth.kind)
            assert set(shown.body) <= set(truth.body), path
    assert ask_real(real, "/start_profile", {}).code == 404
    for refused, kind, code in (
        ({**PROMPT, "model": "other"}, "application/json", 404),
        (PROMPT, "application/x-www-form-urlencoded", 400),
    ):
        truth = ask_real(real, "/v1/completions", refused, kind=kind)
        shown = ask(f"{standin}/v1/completions", refused, kind=kind)
        assert (truth.code, shown.code) == (code, code)
        assert set(truth.body["error"]) == set(shown.body["error"])
    models = [ask_real(real, "/v1/models").body, ask(f"{standin}/v1/models").body]
    keys = [[set(model) for model in listed["data"]] for listed in models]
    assert keys[0] == keys[1]
    usage = [ask_real(real, "/v1/completions", PROMPT), ask(f"{standin}/v1/completions", PROMPT)]
    for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert usage[0].body["usage"][count] == usage[1].body["usage"][count]


def test_the_stand_in_engine_s_metrics_are_the_real_one_s(real: RealSite, standin: str) -> None:
    truth, shown = ask_real(real, "/metrics"), ask(f"{standin}/metrics")
    assert shown.kind == truth.kind
    for name, labels in shown.series.items():
        assert name in truth.series
        if "cache_config_info" in name:  # the real one names every option of the cache
            (few,), (all_of_them,) = labels, truth.series[name]
            assert set(few) <= set(all_of_them)
        else:
            assert (name, labels) == (name, truth.series[name])


def test_counters_rest_while_nothing_is_asked_and_move_when_it_is(real: RealSite) -> None:
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    first, second = ask_real(real, "/metrics"), ask_real(real, "/metrics")
    assert [first.value(n) for n in names] == [second.value(n) for n in names]
    assert second.value("vllm:num_requests_running") == 0
    ask_real(real, "/v1/completions", PROMPT)
    after = ask_real(real, "/metrics")
    moved = [after.value(n) - second.value(n) for n in names]
    assert moved == [3, 4]


# -- captures --------------------------------------------------------------------------------------


def test_a_capture_of_the_real_engine_goes_the_whole_way(real: RealSite) -> None:
    real.plan = captures.a_plan(real.folder, preflight=answer_of_preflight(real))
    # A start takes minutes of processor time, and the requests take theirs of the same cores.
    with Requests(real, pause_s=0.5, limit_s=60) as traffic:
        outcome = real.capture()
    result = outcome.value
    assert isinstance(result, CaptureResult)
    assert outcome.exit_code == 0, outcome.text
    assert (result.kernels, result.is_sealed, real.left()) == (2, True, [])
    assert result.after == result.before
    assert traffic.sent > 20
    assert traffic.lost == 0
    assert sealing.verify(real.bundle)[1] == ()
    (report,) = (real.bundle / "ncu-profiles").glob("*.ncu-rep")
    assert report.read_bytes() == real.report.read_bytes()
    assert all(real.steps().values())
    log = (real.bundle / "logs/server.log").read_text()
    # The window was opened by vLLM itself: the launches came out of its worker, not before.
    assert log.index("POST /start_profile") < log.index("==PROF== Profiling")
    assert log.count("==PROF== Profiling") == 2
    assert "==ERROR==" not in log
    assert TOKEN not in real.everything()
    assert TOKEN not in outcome.text
    # SIGTERM ends the engine and its children well within the time that they are given.
    told = {r.step.partition("-")[2]: r for r in receipts.read(real.bundle)}
    assert seconds(told["finish"]) < 60


def answer_of_preflight(site: RealSite) -> Path:
    """The preflight of production, as the file that a plan is made from."""
    request = preflight.PreflightRequest(
        target="deploy/engine", namespace=site.namespace, exec=True, format="json"
    )
    path = site.folder / "preflight.json"
    path.write_text(preflight.run(request, World()).text)
    return path


def seconds(receipt: Any) -> float:
    """How long a step took."""
    return float((receipt.ended - receipt.begun).total_seconds())


def test_an_engine_that_refuses_the_cuda_profiler_ends_the_capture(real: RealSite) -> None:
    # Without the plugin that stands in for CUDA, a build for CPUs knows the torch profiler only.
    command = f"sh -c 'VLLM_PLUGINS= exec {' '.join(SERVE)} --port 8000'"
    bundle = real.bundle.with_name("refused")
    with pytest.raises(CaptureError, match="ended") as caught:
        real.capture(server_command=command, output=bundle)
    assert caught.value.receipt == "06-ready"
    assert "everything made is deleted" in str(caught.value)
    assert "Unsupported profiler type for cpu: cuda" in (bundle / "logs/server.log").read_text()
    assert real.left() == []


def test_sigterm_ends_production_within_its_grace(real: RealSite) -> None:
    begun = time.monotonic()
    real.cluster.kubectl("-n", real.namespace, "delete", "deployment", "engine", "--wait=true")
    gone = ("wait", "--for=delete", "pod", "-l", "app=engine", f"--timeout={GRACE_S}s")
    real.cluster.kubectl("-n", real.namespace, *gone)
    assert time.monotonic() - begun < GRACE_S / 2
    # Other clusters of this machine may run stand-ins, which have no worker.
    engine = (str(environment.folder()), "VLLM::Worker")
    assert [title for title in titles() if any(word in title for word in engine)] == []


def titles() -> list[str]:
    """The command lines of all processes of this machine."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                found.append(Path(entry.path, "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return found
