"""``solscope plan`` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solscope.cli import commands
from solscope.flows import plan
from solscope.flows.world import World
from solscope.model.plan import CapturePlan, PassMethod


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = commands.call(["plan", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def planned(**request: object) -> CapturePlan:
    outcome = plan.run(plan.PlanRequest(**request), World())
    assert isinstance(outcome.value, CapturePlan)
    return outcome.value


@pytest.mark.parametrize("chip", ["GH100", "GB100"])
@pytest.mark.parametrize("flags", [(), ("--no-library",)])
def test_the_bf16_roofline_takes_about_three_passes_against_forty(
    chip: str, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = called(capsys, "--chip", chip, "--dtype", "bf16", *flags)
    assert code == 0
    assert "about 3 passes a launch" in out
    assert "ncu --set full: about " in out
    assert "ncu --config-file off --target-processes all --profile-from-start off" in out


def test_the_full_set_of_gh100_is_about_forty(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "--chip", "GH100", "--set", "full")
    assert code == 0
    assert "about 40 passes a launch" in out
    assert "--set full" in out


def test_the_plan_as_json_says_passes_and_method(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "--chip", "H200", "--level", "time", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "solscope.plan/1"
    assert document["passes"]["predicted"] == 2
    assert document["passes"]["method"] in ("library", "table")


def test_unknown_metrics_are_listed_with_the_chips_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = called(capsys, "--chip", "GB202", "--metrics", "dram__bytes_read.sum,a__b.sum")
    assert code == 1
    assert "2 metric names unknown on GB202" in out
    assert "dram__bytes_op_read.sum" in out
    assert "ncu --config-file" not in out


def test_a_small_share_is_refused_with_exit_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "--chip", "H200", "--share", "0.01")
    assert code == 1
    assert "1.0%" in out.splitlines()[0]
    assert "command" not in out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "no chip named"),
        (("--chip", "H1000"), "no chip called"),
        (("--chip", "V100"), "begins with Turing"),
        (("--chip", "H200", "--set", "ful"), "full"),
        (("--chip", "H200", "--dtype", "fp12"), "no data type"),
        (("--chip", "H200", "--launches", "0"), "0 launches"),
        (("--chip", "H200", "--share", "14"), "no share"),
        (("--chip", "H200", "--set", "full", "--metrics", "a.sum"), "together"),
        (("--chip", "H200", "--preflight", "missing.json"), "missing.json"),
        (("--chip", "H200", "--level", "roof"), "level"),
        (("vllm", "--chip", "H200"), "names no workload"),
        (("--chip", "H200", "--run", "vllm 'serve"), "no shell command"),
        (("--chip", "H200", "--memory-gb", "-3"), "no positive number"),
        (("--chip", "H200", "--kernel-time-us", "nan"), "no positive number"),
        (("--chip", "H200", "--gpu-memory-utilization", "90"), "no fraction"),
        (("--chip", "H200", "--kernels", "a("), "not a regular expression"),
        (("--chip", "H200", "--metrics", "regex:^nothing__"), "no metric of this chip"),
    ],
)
def test_a_wrong_request_is_exit_two_with_the_next_step(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = called(capsys, *arguments)
    assert code == 2
    assert says in err


def test_the_plan_file_is_written_whole_and_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from solscope.capture import planfile

    path = tmp_path / "deep" / "plan.json"
    code, _, err = called(capsys, "deploy/vllm", "--chip", "B200", "-o", str(path))
    assert code == 0
    assert str(path) in err
    made = planfile.from_json(path.read_bytes(), where=str(path))
    assert made.target == "deploy/vllm"
    assert [p.name for p in path.parent.iterdir()] == ["plan.json"]


def test_a_folder_in_the_files_place_is_an_error_not_a_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = called(capsys, "--chip", "B200", "-o", str(tmp_path))
    assert code == 2
    assert "next" in err or "directory" in err.lower()


def test_a_budget_that_says_host_bound_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = tmp_path / "analysis.json"
    budget.write_text('{"verdict": "host-bound"}')
    code, out, _ = called(capsys, "--chip", "H200", "--budget", str(budget))
    assert code == 1
    assert "waits for the host" in out
    code, _, _ = called(capsys, "--chip", "H200", "--budget", str(budget), "--tier", "prefill")
    assert code == 0


def test_a_preflight_chooses_chip_strategy_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "preflight.json"
    answer = {
        "schema": "solscope.preflight/1",
        "target": {"kind": "Deployment", "name": "vllm", "namespace": "ns"},
        "answer": "possible",
        "strategy": "attach",
        "line": "attach: from a sidecar",
        "measurement_context": {
            "engine": {"memory_fraction": {"value": 0.5}},
            "node": {"product": {"value": "NVIDIA-B200"}, "gpu_memory_bytes": {"value": 180e9}},
        },
    }
    path.write_text(json.dumps(answer))
    made = planned(preflight=path, kernels=("gemm",))
    assert made.chip == "GB100"
    assert made.strategy.value == "attach"
    assert made.cost.backup_bytes == pytest.approx(90e9)
    assert made.target == "Deployment/vllm -n ns"


def test_without_the_library_the_list_is_the_same_and_the_table_is_named() -> None:
    by_library = planned(chip="GH100", dtype="fp8")
    by_table = planned(chip="GH100", dtype="fp8", no_library=True)
    assert by_table.metrics == by_library.metrics
    assert by_table.passes.method is PassMethod.TABLE
    assert by_table.passes.counter_passes == by_library.passes.counter_passes
