"""Public problem reports that a plan must not repeat: what is said, and what is not."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import pytest
from tests import corpus

from solscope.capture.planning import command, filters, rules
from solscope.errors import UsageError
from solscope.flows import plan
from solscope.flows.world import World
from solscope.model.plan import CapturePlan
from solscope.render import plan as page

pytestmark = pytest.mark.corpus


def case(name: str) -> Mapping[str, Any]:
    path = corpus.require(corpus.SHARED / "cases" / "cases.json")
    document = json.loads(path.read_text())
    cases = document if isinstance(document, list) else document["cases"]
    (found,) = [c for c in cases if c["id"] == name]
    return found


def files(name: str) -> Mapping[str, str]:
    return case(name)["probe"]["files"]


def planned(**request: Any) -> CapturePlan:
    made = plan.run(plan.PlanRequest(**{"chip": "H200", **request}), World()).value
    assert isinstance(made, CapturePlan)
    return made


def said(found: Any) -> str:
    """All words of findings."""
    return " ".join(f"{f.code} {f.fact} {f.remedy}" for f in found)


def check(name: str, text: str, *, also: tuple[str, ...] = ()) -> None:
    """Nothing forbidden is said; ``also`` are the ideas of ``must_say`` in our words."""
    for forbidden in case(name)["expected"]["must_not_say"]:
        assert forbidden.lower() not in text.lower(), forbidden
    for wanted in also:
        assert wanted.lower() in text.lower(), wanted


def commands_of(name: str, file: str = "cmd.txt") -> list[list[str]]:
    return [shlex.split(line) for line in files(name)[file].splitlines() if line.strip()]


def test_vllm_06_all_four_commands_are_invalid() -> None:
    found = [rules.check(argv) for argv in commands_of("vllm-06", "cmds.txt")]
    assert sum(any(f.blocks for f in each) for each in found) == 4
    assert case("vllm-06")["expected"]["value"]["invalid"] == 4


def test_hang_01_the_collective_is_excluded_and_a_running_command_told() -> None:
    made = planned(kernels=("ncclDevKernel_AllReduce_Sum_bf",), tensor_parallel=8)
    assert made.is_refused
    check("hang-01", said(made.findings), also=("serialises", "exclude nccl"))
    (argv,) = commands_of("hang-01")
    ours = planned(kernels=(), tensor_parallel=8, run=shlex.join(rules.parse(argv)[1]))
    assert "plan-no-kernel-filter" in said(ours.findings)


def test_hang_03_dispatch_is_excluded_and_the_gemm_kept() -> None:
    rows = files("hang-03")["kernels.csv"].splitlines()[1:]
    made = planned(kernels=tuple(row.rsplit(",", 1)[0] for row in rows))
    assert made.launches.patterns == ("flash_fwd_splitkv_kernel",)
    check("hang-03", said(made.findings), also=("exclude", "dispatch"))


def test_hang_04_a_notebook_is_told_to_become_a_script() -> None:
    with pytest.raises(UsageError) as error:
        command.unwrap(shlex.split(files("hang-04")["cmdline"]))
    check("hang-04", str(error.value), also=("script",))


def test_hang_05_autotuning_is_named_and_a_hundred_launches_are_over_budget() -> None:
    made = planned(run="python bench.py", launches=130, memory_gb=20.0, set="full")
    assert "plan-too-long" in said(made.findings)
    check(
        "hang-05",
        said(made.findings),
        also=("autotun", "last or most frequent configuration"),
    )


def test_hang_07_many_ranks_are_told_tp_one_or_eager_and_time_outs() -> None:
    made = planned(run="vllm serve m -tp 8", tensor_parallel=8, kernels=("gemm",))
    check("hang-07", said(made.findings), also=("TP=1 or eager", "time-outs"))


def test_nokern_02_and_15_children_are_followed() -> None:
    for name, idea in (("nokern-02", "EngineCore"), ("nokern-15", "env wrapper")):
        (argv,) = commands_of(name)
        text = said(rules.check(argv))
        check(name, text, also=("--target-processes all", idea))
    made = planned(run="env M=256 N=4096 python3 one_op.py")
    assert "--target-processes all" in made.command_line
    assert made.command_line.startswith("M=256 N=4096 ncu ")


def test_nokern_03_the_torch_profiler_is_taken_from_the_endpoint() -> None:
    made = planned(target="deploy/vllm", kernels=("gemm",))
    text = page.page(made)
    check("nokern-03", text, also=("VLLM_TORCH_PROFILER_DIR", "profile-from-start"))
    assert "VLLM_TORCH_PROFILER_DIR" in made.unset
    assert made.environment["VLLM_TORCH_CUDA_PROFILE"] == "1"


def test_nokern_05_the_planner_writes_the_slash_itself() -> None:
    made = planned(nvtx=("decode_step",))
    check("nokern-05", made.command_line, also=("decode_step/",))
    assert filters.nvtx_range("start-end:bwd_range") == "bwd_range"  # nokern-04's way out


def test_nokern_11_graphs_are_profiled_by_node() -> None:
    check("nokern-11", planned().command_line, also=("--graph-profiling node",))


def test_nokern_14_an_unknown_set_is_an_error() -> None:
    (argv,) = commands_of("nokern-14")
    check("nokern-14", said(rules.check(argv)), also=("ful", "full"))
    with pytest.raises(UsageError, match="full"):
        planned(set="ful")


def test_nokern_17_a_script_gets_its_shell() -> None:
    made = planned(run="./serve.sh")
    check("nokern-17", made.command_line, also=("--target-processes all", "/bin/bash ./serve.sh"))


def test_mem_01_host_memory_below_the_save_is_refused() -> None:
    limit = float(files("mem-01")["memory.max"]) / 1e9
    used = float(files("mem-01")["smi.csv"].split()[-2]) * 2**20 / 1e9
    made = planned(memory_gb=used, host_memory_gb=limit)
    check(
        "mem-01",
        said(f for f in made.findings if f.code == "plan-host-memory"),
        also=("--replay-mode application", "host memory"),
    )


def test_mem_05_and_apprep_03_application_replay_is_told_what_it_needs() -> None:
    made = planned(replay_mode="application", kernels=("gemm", "all_reduce", "all_gather"))
    text = said(made.findings)
    check("apprep-03", text, also=("matching by grid", "fraction"))
    assert made.launches.patterns == ("gemm",)
    assert "deterministic" in text
    assert "relaxed" in text


def test_metric_08_basic_is_no_roofline() -> None:
    check("metric-08", said(planned(set="basic").findings), also=("roofline",))


def test_read_10_a_stand_in_is_marked() -> None:
    meta = json.loads(files("read-10")["meta.json"])
    made = planned(strategy="harness", tensor_parallel=meta["ranks_in_production"])
    check("read-10", said(made.findings), also=("1 of 8 ranks",))


def test_k8s_08_the_pause_is_held_against_the_probe() -> None:
    probe = json.loads(files("k8s-08")["pod.json"])["spec"]["containers"][0]["livenessProbe"]
    budget = probe["periodSeconds"] * probe["failureThreshold"]
    made = planned(probe_budget_s=float(budget), memory_gb=120.0)
    check("k8s-08", said(made.findings), also=("about 15 s",))


def test_k8s_12_a_long_capture_is_detached() -> None:
    expected = json.loads(files("k8s-12")["plan.json"])["expected_capture_s"]
    made = planned(memory_gb=120.0, launches=30, max_time_s=1e4)
    assert made.cost.total_s is not None
    assert made.cost.total_s > expected / 4
    check("k8s-12", said(made.findings), also=("detach",))


def test_vllm_01_workers_are_spawned() -> None:
    made = planned(target="deploy/vllm", kernels=("gemm",))
    check("vllm-01", page.page(made), also=("spawn",))


def test_file_04_report_names_differ_by_plan_and_process() -> None:
    assert planned(kernels=("gemm",)).output != planned(kernels=("norm",)).output
    assert "%p" in planned().output


def test_mem_06_a_full_device_is_told_to_shrink(tmp_path) -> None:
    fraction = float(files("mem-06")["args.txt"].split()[-1])
    path = tmp_path / "p.json"
    context = {"engine": {"memory_fraction": {"value": fraction}}}
    answer = {"answer": "possible", "strategy": "launch", "measurement_context": context}
    path.write_text(json.dumps(answer))
    made = planned(preflight=path, kernels=("gemm",))
    text = said(f for f in made.findings if f.code == "plan-device-memory-full")
    assert "0.92" in text
