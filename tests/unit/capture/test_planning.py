"""Question in, plan out: refusals, filters, costs, command."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from solscope.capture import planfile, planning
from solscope.capture.planning import command, evidence, filters, prize, rules
from solscope.errors import UsageError
from solscope.model.finding import Severity
from solscope.model.plan import (
    CapturePlan,
    Level,
    MetricList,
    NameBase,
    PassEstimate,
    PassMethod,
    Strategy,
    Window,
)

PASSES = PassEstimate(
    predicted=4,
    method=PassMethod.TABLE,
    counter_passes=3,
    other_passes=1,
    low=3,
    high=5,
    source="a table",
)
METRICS = MetricList(name="roofline", chip="GH100", metrics=("gpu__time_duration.sum",))


def a_plan(*, facts: dict[str, Any] | None = None, **changes: Any) -> CapturePlan:
    question: dict[str, Any] = {
        "level": Level.ROOFLINE,
        "chip": "GH100",
        "capability": "9.0",
        "dtype": None,
        "metrics": METRICS,
        "passes": PASSES,
        "kernels": ("fused_moe",),
        "facts": planning.Facts(**(facts or {})),
    }
    return planning.decide(planning.Question(**{**question, **changes}))


def codes(plan: CapturePlan) -> set[str]:
    return {finding.code for finding in plan.findings}


def test_a_share_below_the_threshold_refuses_with_the_number() -> None:
    plan = a_plan(share=0.015)
    assert plan.is_refused
    assert plan.strategy is Strategy.NONE
    (finding,) = [f for f in plan.findings if f.code == "plan-win-too-small"]
    assert "1.5%" in finding.fact


def test_the_bound_of_amdahl_is_one_over_what_is_left() -> None:
    assert prize.of_share(0.5, 0.02).max_speedup == 2.0
    assert not a_plan(share=0.14).is_refused


@pytest.mark.parametrize("share", [-0.1, 1.0, 14.0])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="no share"):
        prize.of_share(share, 0.02)


def test_a_host_bound_decode_refuses_but_prefill_work_goes_on() -> None:
    facts = {"budget_verdict": "host-bound"}
    assert "plan-host-bound" in codes(a_plan(facts=facts))
    assert a_plan(facts=facts).is_refused
    assert not a_plan(facts=facts, is_decode=False).is_refused
    assert not a_plan(facts={"budget_verdict": "kernel-bound"}).is_refused
    elsewhere = a_plan(facts={"budget_verdict": "comm-bound"})
    assert "plan-bound-elsewhere" in codes(elsewhere)
    assert not elsewhere.is_refused


COLLECTIVES = (
    "nccl.*",
    "ncclDevKernel_AllReduce",
    "multimem_all_reduce",
    "cross_device_reduce",
    "deep_ep::internode_ll::dispatch",
)
WIDE = (".*", "Kernel", "reduce")


@pytest.mark.parametrize("pattern", COLLECTIVES)
@pytest.mark.parametrize("ranks", [None, 8])
def test_a_pattern_that_names_a_collective_is_left_out(pattern: str, ranks: int | None) -> None:
    facts = {"tensor_parallel": ranks}
    plan = a_plan(kernels=(pattern, "flash_fwd_splitkv_kernel"), facts=facts)
    assert plan.launches.patterns == ("flash_fwd_splitkv_kernel",)
    assert "plan-collective-kernel" in codes(plan)
    assert not plan.is_refused
    assert a_plan(kernels=(pattern,), facts=facts).is_refused


@pytest.mark.parametrize("pattern", WIDE)
def test_a_wide_pattern_is_refused_where_there_are_ranks_and_named_where_unknown(
    pattern: str,
) -> None:
    assert a_plan(kernels=(pattern,), facts={"tensor_parallel": 8}).is_refused
    unknown = a_plan(kernels=(pattern,))
    assert "plan-pattern-wide" in codes(unknown)
    assert not unknown.is_refused


@pytest.mark.parametrize("pattern", [*COLLECTIVES, *WIDE])
def test_a_single_rank_has_no_peers_to_wait_for(pattern: str) -> None:
    plan = a_plan(kernels=(pattern,), facts={"tensor_parallel": 1})
    assert plan.launches.patterns == (pattern,)
    assert not plan.is_refused


@pytest.mark.parametrize(
    "pattern",
    [
        "fused_moe_kernel",
        "nvjet_tst_.*_2cta",
        "fmhaSm100f",
        "gemm",
        "flash_fwd_splitkv_combine_kernel",
        "reduce_segments",
        "exact:splitKreduce_kernel",
    ],
)
def test_compute_kernels_stay(pattern: str) -> None:
    assert not filters.selects_collective(pattern)


@pytest.mark.parametrize(
    ("patterns", "value", "base"),
    [
        (("fused_moe",), "regex:fused_moe", NameBase.FUNCTION),
        (("a", "b.*"), "regex:a|b.*", NameBase.FUNCTION),
        (("exact:fused_moe_kernel",), "fused_moe_kernel", NameBase.FUNCTION),
        (("exact:a", "b"), "regex:^a$|b", NameBase.FUNCTION),
        (("cutlass::Kernel2<.*bf16",), "regex:cutlass::Kernel2<.*bf16", NameBase.DEMANGLED),
        (("_ZN7cutlass.*",), "regex:_ZN7cutlass.*", NameBase.MANGLED),
    ],
)
def test_the_filter_form_and_the_name_it_is_compared_with(
    patterns: tuple[str, ...], value: str, base: NameBase
) -> None:
    assert filters.kernel_name(patterns) == (value, base)


def test_a_broken_expression_is_refused_before_the_model_loads() -> None:
    with pytest.raises(UsageError, match="not a regular expression"):
        a_plan(kernels=("fused_(",))


def test_no_launch_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="0 launches"):
        a_plan(launches=0)


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ("decode_step", "decode_step/"),
        ("decode_step/", "decode_step/"),
        ("outer/inner", "outer/inner"),
        ("start-end:bwd_range", "bwd_range"),
        ("vllm@step", "vllm@step/"),
    ],
)
def test_a_push_pop_range_gets_its_slash(word: str, option: str) -> None:
    plan = a_plan(nvtx=(word,))
    assert plan.launches.window is Window.NVTX
    at = plan.arguments.index("--nvtx-include")
    assert plan.arguments[at + 1] == option
    assert "--nvtx" in plan.arguments


def test_without_a_kernel_filter_many_ranks_are_refused() -> None:
    facts = {"target": "deploy/vllm", "tensor_parallel": 8}
    plan = a_plan(kernels=(), facts=facts)
    assert "plan-no-kernel-filter" in codes(plan)
    assert plan.is_refused
    assert not a_plan(kernels=(), facts={"target": "deploy/vllm"}).is_refused


def test_pause_and_total_are_passes_times_kernel_and_copies() -> None:
    facts = {"resident_bytes": 40e9, "kernel_time_s": 1e-3, "sources": ("--memory-gb",)}
    plan = a_plan(facts=facts, launches=2)
    # 4 passes x (1 ms + 40 GB at 20 GB/s).
    assert plan.cost.pause_s == pytest.approx(4 * (0.001 + 2.0))
    assert plan.cost.total_s == pytest.approx(2 * 4 * 2.001)
    assert plan.cost.backup_bytes == 40e9
    assert {"passes", "launches", "kernel time", "save and restore rate"} <= {
        item.name for item in plan.cost.inputs
    }


def test_unknown_memory_gives_no_pause_and_says_what_is_missing() -> None:
    plan = a_plan()
    assert plan.cost.pause_s is None
    assert "--memory-gb" in plan.cost.caveats[0]


def test_a_capture_over_the_time_allowed_is_refused() -> None:
    facts = {"resident_bytes": 120e9}
    assert "plan-too-long" in codes(a_plan(facts=facts, launches=100))
    assert not a_plan(facts=facts, launches=1).is_refused


def test_host_memory_below_the_save_is_refused_with_both_ways_out() -> None:
    plan = a_plan(facts={"resident_bytes": 120e9, "host_free_bytes": 34e9})
    (finding,) = [f for f in plan.findings if f.code == "plan-host-memory"]
    assert "120 GB" in finding.fact
    assert "--replay-mode application" in finding.remedy
    assert plan.is_refused


def test_a_lowered_fraction_lowers_what_must_be_saved() -> None:
    facts = {"resident_bytes": 90e9, "memory_fraction": 0.9, "sources": ("preflight",)}
    full = a_plan(facts=facts)
    assert "plan-device-memory-full" in codes(full)
    lowered = a_plan(facts=facts, gpu_memory_utilization=0.6)
    assert lowered.cost.backup_bytes == pytest.approx(60e9)
    assert "plan-device-memory-full" not in codes(lowered)


def test_a_harness_has_not_the_servers_memory() -> None:
    facts = {"resident_bytes": 90e9, "tensor_parallel": 8, "sources": ("preflight",)}
    plan = a_plan(facts=facts, strategy=Strategy.HARNESS)
    assert plan.cost.backup_bytes is None
    assert plan.launches.window is Window.WHOLE_RUN
    assert any("1 of 8 ranks" in f.fact for f in plan.findings)


def test_a_long_capture_is_told_to_detach() -> None:
    plan = a_plan(facts={"resident_bytes": 120e9, "idle_limit_s": 300.0}, launches=20)
    assert "plan-needs-detach" in codes(plan)


def test_the_probe_margin_is_stated() -> None:
    plan = a_plan(facts={"resident_bytes": 120e9, "probe_budget_s": 15.0})
    (finding,) = [f for f in plan.findings if f.code == "plan-probe-margin"]
    assert "about 15 s" in finding.fact
    assert finding.severity is Severity.WARNING


def test_the_command_keeps_the_rules_of_a_server_capture() -> None:
    plan = a_plan(run=("vllm", "serve", "m"))
    words = shlex.split(plan.command_line)
    assert words[:5] == ["ncu", "--config-file", "off", "--target-processes", "all"]
    assert words[words.index("--profile-from-start") + 1] == "off"
    assert words[-3:] == ["vllm", "serve", "m"]
    output = words[words.index("--export") + 1]
    assert "%p" in output
    assert output.endswith(".ncu-rep")
    assert "--cache-control" in words
    assert "--clock-control" in words
    assert rules.check(words) == ()
    assert plan.environment["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"


def test_a_kernel_name_with_shell_signs_is_quoted() -> None:
    plan = a_plan(kernels=("Kernel2<.*bf16, (true|false)>",))
    assert f"'{plan.launches.kernel}'" in plan.command_line


def test_a_program_that_is_no_server_has_no_window_to_wait_for() -> None:
    plan = a_plan(run=("python3", "op.py"))
    assert plan.launches.window is Window.WHOLE_RUN
    assert "--profile-from-start" not in plan.arguments
    assert "plan-warm-up-first" in codes(plan)


@pytest.mark.parametrize(
    ("release", "present", "absent"),
    [
        ("2022.3", ["--target-processes"], ["--config-file", "--graph-profiling"]),
        ("2023.1", ["--config-file"], ["--disable-extra-suffixes"]),
        ("2024.1", ["--disable-extra-suffixes"], ["--pipeline-boost-state"]),
        ("2026.1.1", ["--pipeline-boost-state"], []),
    ],
)
def test_options_follow_the_release(release: str, present: list[str], absent: list[str]) -> None:
    arguments = a_plan(ncu_version=release).arguments
    assert all(option in arguments for option in present)
    assert not any(option in arguments for option in absent)


def test_what_a_release_cannot_do_is_refused() -> None:
    with pytest.raises(UsageError, match="too old"):
        a_plan(ncu_version="2020.3")
    with pytest.raises(UsageError, match="no boost"):
        a_plan(ncu_version="2025.1", clock_control="boost")
    with pytest.raises(UsageError, match="no ncu release"):
        a_plan(ncu_version="latest")
    tensor = MetricList(name="x", chip="GH100", metrics=("sm__ops_path_tensor_src_fp8.sum",))
    assert a_plan(ncu_version="2023.3", metrics=tensor).is_refused


def test_attach_needs_two_commands_the_waiting_one_first() -> None:
    plan = a_plan(strategy=Strategy.ATTACH, run=("vllm", "serve", "m"))
    first, second = plan.command_line.splitlines()
    assert "--mode launch" in first
    assert first.endswith("&")
    assert "--mode attach" in second
    assert "--target-processes" not in second
    assert plan.wrapper_arguments[:2] == ("--mode", "launch")


def test_preload_is_marked_unverified() -> None:
    assert "plan-preload-unverified" in codes(a_plan(strategy=Strategy.PRELOAD))


def test_application_replay_wants_a_deterministic_driver_and_no_whole_graphs() -> None:
    plan = a_plan(replay_mode="application")
    (finding,) = [f for f in plan.findings if f.code == "plan-application-replay"]
    assert "deterministic" in finding.remedy
    assert plan.cost.backup_bytes == 0
    assert a_plan(replay_mode="application", graph_profiling="graph").is_refused


def test_the_basic_set_is_named_for_what_it_lacks() -> None:
    basic = MetricList(name="set/basic", chip="GH100", section_set="basic")
    assert "plan-set-lacks-roofline" in codes(a_plan(metrics=basic))
    old = a_plan(metrics=basic, ncu_version="2022.3").arguments
    assert old[old.index("--set") + 1] == "default"


def test_two_questions_never_share_a_report_name() -> None:
    assert a_plan().output != a_plan(kernels=("other",)).output
    assert a_plan().output == a_plan().output


def test_the_env_wrapper_is_taken_off_and_its_variables_kept() -> None:
    target = command.unwrap(["env", "M=256", "N=4096", "python3", "one_op.py"])
    assert target.argv == ("python3", "one_op.py")
    assert target.environment == {"M": "256", "N": "4096"}
    plan = a_plan(run=("env", "M=256", "python3", "one_op.py"))
    assert plan.command_line.startswith("M=256 ncu ")


def test_a_script_gets_its_interpreter_and_a_notebook_is_refused() -> None:
    assert command.unwrap(["./serve.sh", "-x"]).argv == ("/bin/bash", "./serve.sh", "-x")
    with pytest.raises(UsageError, match="notebook"):
        command.unwrap(["python", "-m", "ipykernel_launcher", "-f", "k.json"])


def test_a_plan_survives_its_file() -> None:
    plan = a_plan(share=0.14, facts={"resident_bytes": 1e9})
    assert planfile.from_json(planfile.to_json(plan), where="plan.json") == plan


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"{", "not a capture plan"),
        (b"[]", "schema is None"),
        (b'{"schema": "solscope.plan/9"}', "solscope.plan/9"),
        (b'{"schema": "solscope.plan/1"}', "missing required field"),
    ],
)
def test_a_file_that_is_no_plan_is_a_named_error(raw: bytes, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        planfile.from_json(raw, where="plan.json")


def a_preflight(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "solscope.preflight/1",
        "target": {"kind": "Deployment", "name": "vllm", "namespace": "ns"},
        "answer": "possible",
        "strategy": "launch",
        "line": "launch: a sister runs the server under ncu",
        "questions": [],
        "findings": [],
        "measurement_context": {
            "engine": {"tensor_parallel": 2, "memory_fraction": {"value": 0.9}},
            "node": {"product": {"value": "NVIDIA-H200"}, "gpu_memory_bytes": {"value": 100e9}},
        },
        **changes,
    }


def test_a_preflight_gives_its_facts_and_its_way_in() -> None:
    found = evidence.of_preflight(a_preflight(), where="p.json")
    assert found.facts.target == "Deployment/vllm -n ns"
    assert found.facts.resident_bytes == pytest.approx(90e9)
    assert found.facts.tensor_parallel == 2
    assert found.chip == "NVIDIA-H200"
    assert (found.strategy, found.reason) == (
        Strategy.LAUNCH,
        "a sister runs the server under ncu",
    )


def test_a_refusing_preflight_refuses_the_plan() -> None:
    block = {"code": "amd-gpu", "severity": "blocks", "where": "x", "fact": "f", "remedy": "r"}
    document = a_preflight(answer="refused", strategy="none", findings=[block])
    found = evidence.of_preflight(document, where="p.json")
    assert a_plan(given_findings=found.findings).is_refused


def test_of_several_workloads_the_named_one_is_taken() -> None:
    other = a_preflight(target={"kind": "Deployment", "name": "b", "namespace": None})
    both = {"workloads": [a_preflight(), other]}
    with pytest.raises(UsageError, match="several workloads"):
        evidence.of_preflight(both, where="p.json")
    found = evidence.of_preflight(both, where="p.json", workload="deploy/b")
    assert found.facts.target == "Deployment/b"


@pytest.mark.parametrize("document", [[], {}, {"answer": "x", "workloads": []}, "text"])
def test_odd_preflights_are_named_or_empty_never_a_crash(document: Any) -> None:
    try:
        found = evidence.of_preflight(document, where="p.json")
    except UsageError:
        return
    assert found.strategy is None


def test_a_budget_is_read_wherever_its_verdict_stands() -> None:
    one = {"schema": "x", "devices": [{"verdict": "host-bound"}]}
    assert evidence.verdict_of_budget(one, where="b.json") == "host-bound"
    two = {"devices": [{"verdict": "host-bound"}, {"verdict": "kernel-bound"}]}
    assert evidence.verdict_of_budget(two, where="b.json") == "mixed"
    with pytest.raises(UsageError, match="no budget verdict"):
        evidence.verdict_of_budget({"kernels": [{"bound": "dram"}]}, where="b.json")


# -- several kernels -------------------------------------------------------------------------------


def test_several_kernels_are_counted_each_for_itself_in_one_run() -> None:
    plan = a_plan(kernels=("fused_moe", "flash_fwd"), launches=3)
    words = list(plan.arguments)
    assert words[words.index("--filter-mode") + 1] == "per-launch-config"
    assert plan.launches.wanted == 6
    assert plan.each() == (plan,)
    assert "plan-count-per-kernel" in codes(plan)
    (launches,) = [i for i in plan.cost.inputs if i.name == "launches"]
    assert (launches.value, launches.source) == (6, "--launches of each kernel")


def test_one_kernel_needs_no_filter_mode() -> None:
    plan = a_plan(launches=3)
    assert "--filter-mode" not in plan.arguments
    assert plan.launches.wanted == 3


def test_an_ncu_that_cannot_count_each_says_that_the_count_is_shared() -> None:
    plan = a_plan(kernels=("fused_moe", "flash_fwd"), ncu_version="2022.3")
    assert "--filter-mode" not in plan.arguments
    assert "plan-count-is-shared" in codes(plan)
    assert (
        "--filter-mode"
        in a_plan(kernels=("fused_moe", "flash_fwd"), ncu_version="2022.4").arguments
    )


def test_a_run_for_each_kernel_has_its_own_filter_and_report() -> None:
    plan = a_plan(kernels=("fused_moe", "void moe<int>"), launches=2, runs_each=True)
    first, second = plan.each()
    assert (first.launches.kernel, second.launches.kernel) == (
        "regex:fused_moe",
        "regex:void moe<int>",
    )
    assert (first.launches.name_base, second.launches.name_base) == (
        NameBase.FUNCTION,
        NameBase.DEMANGLED,
    )
    assert first.output != second.output
    assert plan.arguments == first.arguments
    assert all("--filter-mode" not in one.arguments for one in (first, second))
    assert plan.command_line.count("--launch-count 2") == 2
    assert planfile.from_json(planfile.to_json(plan), where="plan") == plan
    (launches,) = [i for i in plan.cost.inputs if i.name == "launches"]
    assert launches.value == 4


def test_a_server_without_a_profiler_endpoint_is_not_given_its_window() -> None:
    assert a_plan(facts={"target": "deploy/x"}).launches.window is Window.ENGINE_PROFILER
    facts = {"target": "deploy/x", "engine": "tensorrt-llm"}
    assert a_plan(facts=facts).launches.window is Window.WHOLE_RUN
    assert a_plan(run=("trtllm-serve", "m")).launches.window is Window.WHOLE_RUN


@pytest.mark.parametrize("word", ["", "/", " ", "start-end:"])
def test_a_range_without_a_name_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="names no NVTX range"):
        a_plan(nvtx=(word,))
