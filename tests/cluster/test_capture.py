"""Captures in the test cluster: the whole way, and every way of failing. Nothing is ever left."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from solscope.errors import CaptureError
from solscope.evidence import bundle as bundles
from solscope.evidence import receipts, sealing
from solscope.evidence.campaign import context as contexts
from solscope.evidence.redaction import Redactor
from solscope.flows import analyze, capture
from solscope.flows.world import Outcome, World
from solscope.model.capture import CaptureResult
from solscope.model.evidence import BundleSource
from tests import captures
from tests.cluster import tools
from tests.cluster.fixture import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.capture]

IMAGE = "example.com/ncu:2026.2.1"
TOKEN = "hf_plantedTokenValue01"
SHELL = "sh -c '{} exec vllm serve tiny --port 8000'"


class Site:
    """A namespace with production in it, a plan, and captures of it."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self.plan = captures.a_plan(folder)
        self.report = captures.a_report(folder, self.plan)
        self.bundle = folder / "bundle"
        self.said: list[str] = []

    def deploy(self, *, replicas: int = 1, **env: Any) -> None:
        objects = captures.production(self.namespace, self.report, replicas=replicas, **env)
        self.cluster.kubectl("apply", "-f", "-", stdin=captures.documents(objects))
        status = ("rollout", "status", "deployment/engine", "--timeout=120s")
        self.cluster.kubectl("-n", self.namespace, *status)

    def options(self, **options: Any) -> dict[str, Any]:
        # Upper bounds for a busy machine: tests that wait for a limit to pass give their own.
        bounds = ("pending", "ready", "warm_up", "window", "finish", "cleanup")
        limits = {f"{name}_limit": 120.0 for name in bounds}
        short = {"isl": 16, "osl": 4, "concurrency": 2, **limits}
        named = {"plan": self.plan, "workload": "deploy/engine", "namespace": self.namespace}
        made = {"tools_image": IMAGE, "output": self.bundle, "yes": True}
        return {**short, **named, **made, **options}

    def capture(self, **options: Any) -> Outcome:
        return self.run(**self.options(**options))

    def run(self, **options: Any) -> Outcome:
        return capture.run(capture.CaptureRequest(**options), World(say=self.said.append))

    def failure(self, **options: Any) -> CaptureError:
        """The error of a capture that must fail, with its receipt, and with nothing left."""
        with pytest.raises(CaptureError) as caught:
            self.capture(**options)
        assert self.left() == []
        assert not self.bundle.exists() or TOKEN not in self.everything()
        return caught.value

    def left(self) -> list[str]:
        """Names of all that carries an experiment's label."""
        kinds = "jobs,deployments,configmaps,pods"
        listed = self.cluster.kubectl(
            "-n", self.namespace, "get", kinds, "-l", "experiment", "-o", "name"
        )
        return listed.stdout.decode().split()

    def everything(self) -> str:
        """All text of the bundle."""
        files = (path for path in self.bundle.rglob("*") if path.is_file())
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)

    def steps(self) -> dict[str, bool]:
        """The recorded steps and whether each did what it was for."""
        told = receipts.read(self.bundle)
        return {r.step.partition("-")[2]: r.is_ok for r in told if r.command is not None}


@pytest.fixture
def site(cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("SOLSCOPE_TEST_TOOLS", str(tools.cache()))
    monkeypatch.setenv("SOLSCOPE_KUBECTL", str(tools.kubectl_path()))
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    # Containers see the host's root, but have a /tmp of their own.
    folder = Path(tempfile.mkdtemp(prefix="solscope-capture-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield Site(cluster, namespace, folder)
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    shutil.rmtree(folder)


class Requests:
    """A steady load on production through its Service, every answer counted.

    ``pause_s`` is the time between an answer and the next request, ``limit_s`` how long an answer
    may take before it counts as lost.
    """

    def __init__(self, site: Site, *, pause_s: float = 0.05, limit_s: float = 60) -> None:
        self.sent = self.lost = 0
        self._pause_s, self._limit_s = pause_s, limit_s
        self._stop = threading.Event()
        self._context = ssl.create_default_context(cafile=str(site.cluster.certificate))
        path = f"/api/v1/namespaces/{site.namespace}/services/front:80/proxy/v1/completions"
        self._url = site.cluster.url + path
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> Requests:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _send(self) -> None:
        body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
        while not self._stop.is_set():
            request = urllib.request.Request(self._url, body)
            request.add_header("Authorization", "Bearer admin")
            request.add_header("Content-Type", "application/json")
            self.sent += 1
            try:
                with urllib.request.urlopen(
                    request, timeout=self._limit_s, context=self._context
                ) as answer:
                    self.lost += answer.status != 200
            except (OSError, http.client.HTTPException):
                self.lost += 1
            time.sleep(self._pause_s)


# -- the whole way ---------------------------------------------------------------------------------


def test_a_capture_brings_sealed_evidence_home_and_leaves_production_alone(site: Site) -> None:
    site.deploy(replicas=2)
    bench = site.folder / "bench.json"
    bench.write_text('{\n  "p50_ms": 12.50,\n  "unit": "ms"\n}\n')
    with Requests(site) as traffic:
        outcome = site.capture(perfbench=bench)
    result = outcome.value
    assert isinstance(result, CaptureResult)
    assert outcome.exit_code == 0, outcome.text
    assert (result.kernels, result.is_sealed, site.left()) == (2, True, [])
    assert result.after == result.before
    assert traffic.sent > 20
    assert traffic.lost == 0
    manifest, changes = sealing.verify(site.bundle)
    assert changes == ()
    (report,) = (site.bundle / "ncu-profiles").glob("*.ncu-rep")
    assert report.read_bytes() == site.report.read_bytes()
    paths = {artifact.path for artifact in manifest.artifacts}
    assert {f"ncu-profiles/{report.stem}-{kind}.csv" for kind in ("raw", "sol")} <= paths
    assert all(site.steps().values())
    # ncu is its container's first process and adopts orphans: only the server was ended.
    (finish,) = (site.bundle / "commands").glob("*-finish.stdout")
    assert len(json.loads(finish.read_text())["signalled"]) == 1
    context = contexts.read(site.bundle / "context.yaml")
    assert context.refused == {}
    stated = {name: value for name, value in context.values() if value is not None}
    assert stated == {
        "identity.model": "tiny",
        "workload.input_tokens": 16,
        "workload.output_tokens": 4,
        "workload.concurrency": 2,
        "regime.state": "warm",
        "serving.gpu_memory_utilization": 0.92,
        "stack.engine": "vllm",
        "stack.version": "0.32.0",
        "stack.image": "example.com/vllm-openai:v0.32.0",
    }
    assert yaml.safe_load((site.bundle / "context.yaml").read_text())["driver_version"] == (
        "580.95.05"
    )
    summary = (site.bundle / "summary.md").read_text()
    assert "Status: DRAFT" in summary
    assert f"`{captures.KERNEL}`" in summary.partition("## Next lever")[0]
    assert "(none yet)" not in summary
    assert "- mechanism: " in (site.bundle / "findings/02-mechanisms.md").read_text()
    analysis = analyze.run(analyze.AnalyzeRequest(paths=(str(report),)), World()).value
    assert [row.totals.name for row in analysis.kernels] == [captures.KERNEL]
    told = (site.bundle / "inference_perfbench_v1.json").read_text()
    assert told.startswith('{\n  "p50_ms": 12.50,\n  "unit": "ms",\n  "kernel_internals": {\n')
    internals = json.loads(told)["kernel_internals"]
    assert internals["sidecar_image"] == IMAGE
    assert list(internals["per_kernel"]) == [captures.KERNEL]
    assert json.loads((site.bundle / "capture_sources.json").read_text()) == {
        "captured_sources": ["ncu"]
    }
    assert TOKEN not in site.everything()
    assert TOKEN not in outcome.text


def test_a_dry_run_prints_every_object_and_command_and_makes_nothing(site: Site) -> None:
    site.deploy()
    outcome = site.capture(yes=False)
    assert outcome.exit_code == 0
    assert "kind: Job" in outcome.text
    assert " create -f capture/sister.yaml --validate=strict" in outcome.text
    assert "/start_profile" in outcome.text
    assert TOKEN not in outcome.text
    assert not site.bundle.exists()
    assert site.left() == []


def test_what_an_open_bundle_states_already_stays(site: Site) -> None:
    redactor = Redactor(lambda text: text, lambda _: False)
    source = BundleSource(experiment="mine", family="engine")
    bundles.init(site.bundle, source, redactor, lambda: datetime.now(UTC))
    stated = "model: my-model\ngrounding:\n  baseline: eager\nserving:\n  max_model_len: 4096\n"
    (site.bundle / "context.yaml").write_text(stated)
    (site.bundle / "summary.md").write_text("# Mine\n\nWhy I looked.\n")
    site.deploy()
    outcome = site.capture()
    assert outcome.exit_code == 0, outcome.text
    told = dict(contexts.read(site.bundle / "context.yaml").values())
    assert told["identity.model"] == "my-model"
    assert told["grounding.baseline"] == "eager"
    assert told["serving.max_model_len"] == 4096
    assert told["stack.engine"] == "vllm"
    summary = (site.bundle / "summary.md").read_text()
    assert summary.startswith("# Mine\n\nWhy I looked.\n\n# mine\n\nStatus: DRAFT")


def test_planted_secrets_appear_nowhere(site: Site) -> None:
    referenced, key = "hf_referencedTokenValue02", "sk-plantedApiKeyValue03"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hub", "namespace": site.namespace},
        "stringData": {"token": referenced},
    }
    site.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(secret))
    site.deploy(
        command=("vllm", "serve", "tiny", "--port", "8000", "--api-key", key),
        HUB_TOKEN={"secretKeyRef": {"name": "hub", "key": "token"}},
        STANDIN_TELLS="HF_TOKEN,HUB_TOKEN",
    )
    dry = site.capture(yes=False)
    outcome = site.capture()
    assert outcome.exit_code == 0, outcome.text
    # The copy has the referenced one, and its server told it.
    log = (site.bundle / "logs/server.log").read_text()
    assert "INFO loaded <redacted>, HUB_TOKEN=<redacted>" in log
    everything = "\n".join([site.everything(), outcome.text, dry.text, *site.said])
    for planted in (TOKEN, referenced, key):
        assert planted not in everything


# -- refusals --------------------------------------------------------------------------------------


def quota(namespace: str, **hard: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "small", "namespace": namespace},
            "spec": {"hard": hard},
        }
    )


def test_a_quota_refuses_before_anything_is_made(site: Site) -> None:
    site.deploy()
    site.cluster.kubectl("apply", "-f", "-", stdin=quota(site.namespace, pods="1"))
    error = site.failure()
    assert "exceeded quota: small" in str(error)
    assert error.receipt == "03-rehearse"
    assert "create" not in site.steps()


def test_pod_security_refuses_with_its_own_words(site: Site) -> None:
    site.deploy()
    label = "pod-security.kubernetes.io/enforce=restricted"
    site.cluster.kubectl("label", "namespace", site.namespace, label)
    error = site.failure()
    assert 'violates PodSecurity "restricted:latest"' in str(error)
    assert "create" not in site.steps()


def test_a_user_without_rights_is_told_which(site: Site) -> None:
    site.deploy()
    site.cluster.add_user("reader")
    rights = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": site.namespace},
        "rules": rights,
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": site.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "reader"}],
    }
    for item in (role, binding):
        site.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(item))
    error = site.failure(context="reader")
    assert "create jobs.batch" in str(error)
    assert error.receipt == "02-rights"


# -- the pod ---------------------------------------------------------------------------------------


def test_no_free_gpu_ends_at_the_stated_limit(site: Site) -> None:
    site.deploy(replicas=8)
    error = site.failure(pending_limit=10.0)
    assert "Insufficient nvidia.com/gpu" in str(error)
    assert error.receipt == "05-start"


def test_an_image_that_cannot_be_pulled_is_told_at_once(site: Site) -> None:
    site.deploy()
    error = site.failure(tools_image="example.com/missing-ncu:1", pending_limit=3600.0)
    assert "ErrImagePull" in str(error) or "ImagePullBackOff" in str(error)
    assert "not running within" not in str(error)


def test_a_server_that_is_never_ready_ends_at_the_limit(site: Site) -> None:
    site.deploy()
    slow = SHELL.format("STANDIN_LOAD_S=3600")
    error = site.failure(ready_limit=3.0, server_command=slow)
    assert "not ready within 3 s: nothing listened" in str(error)
    assert error.receipt == "06-ready"


def test_a_server_that_crashes_in_warm_up_ends_the_capture(site: Site) -> None:
    site.deploy()
    error = site.failure(server_command=SHELL.format("STANDIN_CRASH_AFTER=3"))
    assert error.receipt == "07-warm-up"
    assert "ended" in str(error)
    assert "out of memory" in (site.bundle / "logs/server.log").read_text()


# -- the profiler ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "step", "said", "diagnosis"),
    [
        ("permission", "08-control-probe", "ERR_NVGPUCTRPERM", "kept for administrators"),
        ("driver-busy", "08-control-probe", "resource was unavailable", "Another client holds"),
        ("device-error", "10-profile", "Unknown Error on device 0", "counter library failed"),
        ("memory", "10-profile", "bad allocation", "Memory could not be saved for replay"),
        (
            "no-kernels",
            "10-profile",
            "no launch matched within 4 s",
            "no launch passed its filters",
        ),
        ("hang", "10-profile", "did not finish 'rms_norm_kernel' within 12 s", "ends inside"),
        ("truncated", "14-inspect", "cut", "The report is cut"),
        ("no-driver", "06-ready", "ended", "Driver and ncu do not fit"),
    ],
)
def test_each_failure_of_ncu_ends_with_its_step_and_its_diagnosis(
    site: Site, fault: str, step: str, said: str, diagnosis: str
) -> None:
    site.deploy(STANDIN_NCU_FAIL=fault)
    # Those two wait for the limit to pass, and a hang must have begun by then.
    limit = {"no-kernels": 4.0, "hang": 12.0}.get(fault, 120.0)
    error = site.failure(window_limit=limit)
    # A server that ends at once may have ended before it was seen to run.
    steps = ("05-start", step) if fault == "no-driver" else (step,)
    assert error.receipt in steps, str(error)
    assert said in str(error)
    assert (site.bundle / f"commands/{error.receipt}.stderr").exists()
    assert (site.bundle / "diagnosis.md").exists()
    assert diagnosis in str(error).partition("diagnosis: ")[2]
    assert "everything made is deleted" in str(error)
    assert site.steps()["cleanup"]
    assert site.steps()["production-after"]


def test_a_probe_that_cannot_run_leaves_the_answer_to_the_first_launch(site: Site) -> None:
    site.deploy(STANDIN_NCU_FAIL="permission", STANDIN_NO_CUDA="1")
    error = site.failure()
    assert error.receipt == "10-profile"
    probed = json.loads((site.bundle / "commands/08-control-probe.stdout").read_text())
    assert probed["counters"] == "undecided"
    assert "kept for administrators" in str(error)


# -- the network and the transfer ------------------------------------------------------------------


def test_production_that_restarts_meanwhile_ends_the_capture(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from solscope.capture.execution import run as runs

    monkeypatch.setattr(runs, "WATCH_EVERY_S", 0.0)
    site.deploy()
    kill = ("exec", "deployment/engine", "--", "sh", "-c", "kill -TERM 1")

    def hurt(text: str) -> None:
        site.said.append(text)
        if text == "warm-up":
            site.cluster.kubectl("-n", site.namespace, *kill, check=False)

    request = capture.CaptureRequest(
        **site.options(server_command=SHELL.format("STANDIN_TOKEN_S=0.2"))
    )
    with pytest.raises(CaptureError, match="production changed meanwhile"):
        capture.run(request, World(say=hurt))
    assert site.left() == []
