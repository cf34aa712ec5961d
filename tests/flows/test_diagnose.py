"""`solscope diagnose` from the request to the page and the exit code."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from solscope.cli import commands
from solscope.errors import UsageError
from solscope.flows.diagnose import DiagnoseRequest, run
from solscope.flows.world import World

REFUSED = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_cause_found_is_exit_0_and_undecided_is_exit_1() -> None:
    Path("found.log").write_text(REFUSED)
    Path("open.log").write_text("==WARNING== No kernels were profiled.\n")
    assert run(DiagnoseRequest(paths=("found.log",)), World()).exit_code == 0
    assert run(DiagnoseRequest(paths=("open.log",)), World()).exit_code == 1


def test_the_command_line_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ncu.log").write_text(REFUSED)
    assert commands.call(["diagnose", "ncu.log"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 cause:")
    assert "seen   ncu.log:1" in out
    assert max(map(len, out.splitlines())) <= 110


def test_a_command_alone_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.call(["diagnose", "--command", "ncu -k 'gemm*' python x.py"]) == 0
    assert "regex:gemm.*" in capsys.readouterr().out


def test_a_log_comes_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(REFUSED.encode())

    monkeypatch.setattr("sys.stdin", Stdin())
    outcome = run(DiagnoseRequest(paths=("-",)), World())
    assert "stdin:1" in outcome.text


def test_json_follows_its_schema_name_and_holds_the_evidence() -> None:
    Path("ncu.log").write_text(REFUSED)
    outcome = run(DiagnoseRequest(paths=("ncu.log",), format="json"), World())
    document = json.loads(outcome.text)
    assert document["schema"] == "solscope.diagnosis/1"
    assert document["outcome"] == "cause"
    (cause,) = document["causes"]
    assert cause["code"] == "counter-permission"
    assert cause["evidence"][0]["where"] == "ncu.log:1"


def test_markdown_can_be_pasted() -> None:
    Path("ncu.log").write_text(REFUSED + "==ERROR== a `tick` <b>nobody</b> knows\n")
    text = run(DiagnoseRequest(paths=("ncu.log",), format="markdown"), World()).text
    assert text.startswith("**GPU counters are kept")
    assert "``==ERROR== a `tick` <b>nobody</b> knows``" in text  # in a code span: no markup


def test_facts_decide_what_the_log_alone_leaves_open() -> None:
    Path("ncu.log").write_text(
        "==ERROR== Profiling failed because a driver resource was unavailable or the user does "
        "not have permission to access NVIDIA GPU Performance Counters.\n"
    )
    Path("params").write_text("RmProfilingAdminOnly: 0\n")
    alone = run(DiagnoseRequest(paths=("ncu.log",)), World())
    assert alone.exit_code == 1
    decided = run(DiagnoseRequest(paths=("ncu.log", "params")), World())
    assert decided.exit_code == 0
    assert "counters-held-not-refused" in decided.text


def test_an_environment_comes_as_a_file_or_as_one_value() -> None:
    Path("environment").write_text("CUDA_INJECTION64_PATH=/opt/agent.so\n")
    for value in ("environment", "CUDA_INJECTION64_PATH=/opt/agent.so"):
        outcome = run(DiagnoseRequest(env=(value,)), World())
        assert "injection-in-the-way" in outcome.text


def test_a_manifest_is_read_in_yaml_and_in_json() -> None:
    spec = {
        "containers": [
            {
                "name": "vllm",
                "env": [{"name": "VLLM_WORKER_MULTIPROC_METHOD", "value": "fork"}],
                "securityContext": {"readOnlyRootFilesystem": True},
                "resources": {"limits": {"nvidia.com/gpu": 1}},
                "livenessProbe": {"periodSeconds": 5, "failureThreshold": 4},
            }
        ]
    }
    Path("pod.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": spec}))
    Path("pod.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec: " + json.dumps(spec)
    )
    for name in ("pod.json", "pod.yaml"):
        text = run(DiagnoseRequest(pod=(name,)), World()).text
        for code in ("workers-forked", "tmpdir-not-writable", "probe-would-kill"):
            assert code in text
        assert "about 20 s" in text  # 5 s x 4
        assert "no-gpu" not in text


def test_a_manifest_without_a_fault_sends_to_preflight() -> None:
    Path("pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
    outcome = run(DiagnoseRequest(pod=("pod.yaml",)), World())
    assert outcome.exit_code == 1
    assert "solscope preflight" in outcome.text


def test_a_bundle_is_searched_for_logs_and_commands() -> None:
    folder = Path("bundle/commands")
    folder.mkdir(parents=True)
    (folder / "03-capture.cmd").write_text("ncu --target-processes application-only -- env A=1 x\n")
    (folder / "03-capture.stderr").write_text(
        "==WARNING== No kernels were profiled.\n==WARNING== Profiling kernels launched by child "
        "processes requires the --target-processes all option.\n"
    )
    (folder / "03-capture.exit").write_text("0\n")
    outcome = run(DiagnoseRequest(bundle="bundle"), World())
    assert "kernels-in-child-process" in outcome.text
    assert "env wrapper" in " ".join(outcome.text.split())


def test_a_gzipped_log_is_unfolded() -> None:
    Path("ncu.log.gz").write_bytes(gzip.compress(REFUSED.encode()))
    assert "counter-permission" in run(DiagnoseRequest(paths=("ncu.log.gz",)), World()).text


def test_nothing_to_diagnose_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="nothing to diagnose"):
        run(DiagnoseRequest(), World())


def test_a_missing_file_is_a_usage_error_that_names_it() -> None:
    with pytest.raises(UsageError) as error:
        run(DiagnoseRequest(paths=("nowhere.log",)), World())
    assert error.value.where == "nowhere.log"
