"""A command is checked before it runs."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from solscope.capture.diagnosis import Evidence, diagnose
from solscope.capture.diagnosis.command import find, parse, real_target
from solscope.model.diagnosis import Diagnosis, Outcome
from solscope.model.finding import Absence
from solscope.model.report import Provenance
from solscope.model.trace import KernelTime, TimelineReport, empty, schemas


def lint(text: str, version: str | None = None) -> Diagnosis:
    return diagnose([Evidence(name="--command", text=text, is_command=True)], version=version)


FINE = "ncu --target-processes all -k regex:gemm -s 2 -c 3 --set roofline -o r.ncu-rep python x.py"


def test_a_good_command_is_called_good() -> None:
    found = lint(FINE)
    assert (found.outcome, found.causes[0].code) == (Outcome.WELL, "command-fine")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (
            "ncu --target-processes application-only -- env M=1 python3 x.py",
            "application-only-misses-children",
        ),
        (
            "ncu --target-processes=application-only bash -c 'exec python3 x.py'",
            "application-only-misses-children",
        ),
        (
            "ncu --target-processes application-only vllm serve m -c 1",
            "application-only-misses-children",
        ),
        ("ncu --nvtx --nvtx-include step -c 1 python x.py", "nvtx-name-without-slash"),
        ("ncu --nvtx-include step/ python x.py", "nvtx-option-forgotten"),
        ("ncu -k 'gemm*' python x.py", "exact-name-looks-like-pattern"),
        ("ncu -k 'regex:flash<.*64' python x.py", "template-name-needs-demangled"),
        ("ncu -k 'gemm<128, 64>' python x.py", "template-name-needs-demangled"),
        (
            "ncu --graph-profiling graph --replay-mode application a.out",
            "graph-with-application-replay",
        ),
        ("ncu --app-replay-mode relaxed a.out", "app-replay-option-in-kernel-replay"),
        (
            "ncu --replay-mode application --app-replay-mode relaxed "
            "--app-replay-buffer memory a.out",
            "relaxed-with-memory-buffer",
        ),
        ("ncu --kill yes --replay-mode application -c 1 a.out", "kill-with-application-replay"),
        ("ncu --launch-count 0 a.out", "launch-count-zero"),
        ("ncu -c0 a.out", "launch-count-zero"),
        ("ncu --attach 4711", "option-gone"),
        ("ncu --kernel-regex gemm a.out", "option-gone"),
        ("ncu --launch-cuont 3 a.out", "option-unknown"),
        ("ncu --set ful a.out", "option-value-typo"),
        ("ncu --set basic a.out", "basic-set-has-no-roofline"),
        ("ncu -k regex:all_reduce a.out", "collective-selected"),
        ("ncu --set full torchrun --nproc_per_node=8 t.py", "many-ranks-under-one-ncu"),
        ("ncu run.sh", "shell-script-as-target"),
        ("ncu --set full", "command-without-target"),
        ("ncu --clock-control base a.out", "clock-control-base"),
        ("ncu --cache-control none --set full a.out", "cache-control-none-many-passes"),
        ("ncu --set full vllm serve m", "server-without-limit"),
        ("ncu -k 'regex:gemm a.out", "command-broken"),
        ("ncu --range-filter yes:1 a.out", "range-option-in-kernel-replay"),
        (
            "ncu --replay-mode application --app-replay-mode relaxed -k 'regex:nccl|gemm' a.out",
            "collective-in-relaxed-replay",
        ),
        ("ncu --mode attach --hostname node", "attach-needs-launch"),
        ("ncu --mode launch python x.py", "launch-mode-suspends"),
        ("ncu --kernel-id ::gemm:5 -s 3 a.out", "skip-with-kernel-id"),
        ("ncu --metrics sm__cycles_elapsed.avg dram__bytes_read.sum a.out", "metrics-cut-by-blank"),
        (
            "ncu --metrics sm__cycles_elapsed.avg, dram__bytes_read.sum a.out",
            "metrics-cut-by-blank",
        ),
        ("ncu -c 1 vllm serve m --profile-from-start off", "options-behind-the-program"),
        ("ncu --replay-mode applicaton a.out", "option-value-not-taken"),
        ("ncu --cache-control off a.out", "option-value-not-taken"),
        ("ncu -s many a.out", "option-value-not-taken"),
        ("ncu --section '.*' a.out", "section-pattern-without-regex"),
        ("ncu -k 'regex:(' a.out", "regular-expression-broken"),
        ("ncu --nvtx --nvtx-exclude warmup a.out", "nvtx-exclusion-without-slash"),
        ("ncu --kill yes a.out", "kill-without-count"),
        ("ncu --replay-mode application vllm serve m", "server-under-application-replay"),
        ("srun -n 4 ncu -o r.ncu-rep a.out", "one-report-name-for-all-ranks"),
        ("mpirun -np=2 ncu -o r.ncu-rep a.out", "one-report-name-for-all-ranks"),
        (
            "torchrun --nproc_per_node=4 --no-python ncu -o r python t.py",
            "one-report-name-for-all-ranks",
        ),
        (
            "kubectl exec p -- bash -c \"cd /w && ncu -k 'gemm*' a.out\"",
            "exact-name-looks-like-pattern",
        ),
        ("docker exec p sh -lc 'ncu --attach 17'", "option-gone"),
        ("VLLM_WORKER_MULTIPROC_METHOD=fork ncu -c 1 vllm serve m", "workers-forked"),
        ("ncu -c 1 jupyter notebook", "notebook-target"),
        ("python x.py", "command-without-profiler"),
        ("ncu -k 'regex:void.*flash' a.out", "template-name-needs-demangled"),
        ("ncu --kernel-id gemm a.out", "option-value-not-taken"),
        ("ncu --set full deepspeed --num_gpus 4 t.py", "many-ranks-under-one-ncu"),
        ('"C:\\Program Files\\ncu.exe" -k "gemm*" app.exe', "exact-name-looks-like-pattern"),
    ],
)
def test_a_command_that_will_not_do_what_is_meant(command: str, code: str) -> None:
    found = lint(command)
    assert code in [cause.code for cause in found.causes]
    assert found.outcome is Outcome.CAUSE


@pytest.mark.parametrize(
    "command",
    [
        "ncu --kernel-name 'regex:flash_fwd_(splitkv_)?kernel' -c 5 -o /results/r.ncu-rep a.out",
        "ncu -k regex:'flash_fwd|paged_attention' --launch-skip 100 --launch-count 5 python3 x.py",
        "ncu --kernel-id '::regex:^.*gemm.*$:' -s 2 -c 3 a.out",
        "ncu --nvtx --nvtx-include 'vllm@decode/' -c 5 a.out",
        "ncu --nvtx --nvtx-include '[outer' --nvtx-exclude 'warmup/' -c 5 a.out",
        "ncu --metrics group:memory__dram_table,sm__cycles_elapsed.avg a.out",
        "ncu --set full --section SpeedOfLight --import-source yes -o rep -f a.out",
        "ncu --section regex:SpeedOfLight --device 0 --force a.out",
        "ncu --replay-mode range --nvtx --nvtx-include 'r/' a.out",
        "ncu --replay-mode app-range --communicator tcp -k regex:nccl mpirun -np 8 a.out",
        "ncu --clock-control boost a.out",
        "ncu --import r.ncu-rep --page source --csv --print-source sass",
        "ncu --query-metrics --chip gh100",
        "sudo -E env PATH=$PATH ncu -c 3 -k regex:gemm a.out",
        "docker run --gpus all --cap-add=SYS_ADMIN img ncu -k regex:gemm -c 3 a.out 2>&1 | tee l",
        "kubectl exec p -c vllm -- ncu -k regex:gemm -c 3 a.out",
        "ncu -k 'regex:gemm|attn' -c 3 a.out > out.txt 2>&1",
        "ncu -k regex:gemm\\|attn -c 3 a.out && echo done",
        "sudo /usr/local/cuda/bin/ncu -c 3 -k regex:gemm ./a.out",
        "torchrun --no-python --nproc-per-node 2 ncu -k regex:gemm -c 3 -o r_%p.ncu-rep python x",
        "podman run --device nvidia.com/gpu=all --privileged img ncu -k regex:gemm -c 3 a.out",
        "apptainer exec --nv x.sif ncu -k regex:gemm -c 3 a.out",
        "CUDA_VISIBLE_DEVICES=2,3 ncu --devices 1 -k regex:gemm -c 3 a.out",
        "ncu --section SpeedOfLight --section my_own_section --section-folder s -c 3 a.out",
        "ncu --query-metrics --chips gh100,gb100",
        "mpirun -np 2 ncu -o r_%q{OMPI_COMM_WORLD_RANK} a.out",
        "ncu --target-processes all torchrun --nproc_per_node=1 t.py",
        "uv run ncu -k regex:gemm -c 1 a.out",
        "ncu \\\n  --set roofline \\\n  -c 3 \\\n  a.out",
        "ncu --config-file off --check-exit-code no -c 1 vllm bench latency --model m",
    ],
)
def test_nothing_is_said_against_commands_that_do_what_is_meant(command: str) -> None:
    found = lint(command)
    assert (found.outcome, [c.code for c in found.causes]) == (Outcome.WELL, ["command-fine"])


@pytest.mark.parametrize("value", ["off", "no", "None!"])
def test_who_wants_no_control_is_told_the_word_for_it(value: str) -> None:
    for option in ("--cache-control", "--clock-control"):
        (cause,) = lint(f"ncu {option} {value} a.out").causes
        assert cause.remedies == (f"`{option} none`",)


@pytest.mark.parametrize(
    ("command", "version", "code"),
    [
        ("ncu --graph-profiling graph a.out", "2022.3.0", "option-lacking-in-version"),
        ("ncu --pipeline-boost-state stable a.out", "2024.1.1", "option-lacking-in-version"),
        ("ncu -c 1 env A=1 python x.py", "2023.2.0", "old-default-misses-children"),
        ("ncu -o report a.out", "2026.3.1", "output-name-without-extension"),
        ("ncu --clock-control boost a.out", "2024.1.1", "clock-value-lacking"),
    ],
)
def test_what_is_wrong_in_one_release_only(command: str, version: str, code: str) -> None:
    assert code in [cause.code for cause in lint(command, version).causes]
    assert code not in [cause.code for cause in lint(command).causes]


API_TABLE = """ ** CUDA API Summary (cuda_api_sum):

 Time (%)  Total Time (ns)  Num Calls  Name
 91.0  9,033  20  cudaLaunchKernel
"""


@pytest.mark.parametrize(
    ("filters", "is_beyond"),
    [("-c 21", True), ("-c 20", False), ("-s 15 -c 6", True), ("-s 15 -c 5", False), ("", False)],
)
def test_more_launches_than_the_window_has_are_asked_for(filters: str, is_beyond: bool) -> None:
    """The API table of the window counts 20 launches."""
    command = f"ncu {filters} --set roofline -o r.ncu-rep a.out"
    found = diagnose(
        [
            Evidence(name="api.txt", text=API_TABLE),
            Evidence(name="--command", text=command, is_command=True),
        ]
    )
    told = [c for c in found.causes if c.code == "launch-count-beyond-window"]
    assert bool(told) is is_beyond
    assert all("more than the window launches (20)" in cause.title for cause in told)
    assert all("By api.txt:4." in cause.why[0] for cause in told)


@pytest.mark.parametrize(
    ("filters", "codes"),
    [
        ("-k regex:gemm -c 3", ["command-fine", "timeline-fine"]),
        ("-k regex:gemm -c 4", ["launch-count-beyond-window"]),
        ("-k gemm -s 1 -c 3", ["launch-count-beyond-window"]),
        ("-k regex:attention -c 4", ["filter-matches-nothing-in-window"]),
        ("-c 5", ["command-fine", "timeline-fine"]),
        ("-c 6", ["launch-count-beyond-window"]),
    ],
)
def test_filters_and_counts_are_checked_against_a_timeline(filters: str, codes: list[str]) -> None:
    """The window launches gemm three times and softmax twice."""
    command = f"ncu {filters} --set roofline -o r.ncu-rep a.out"
    found = diagnose(
        [Evidence(name="--command", text=command, is_command=True)], timelines=[window()]
    )
    assert [c.code for c in found.causes] == codes


def test_a_window_of_whole_graphs_counts_no_launches() -> None:
    graphs = pa.table(
        {f.name: pa.array([0], type=f.type) for f in schemas()["graphs"]},
        schema=schemas()["graphs"],
    )
    found = diagnose(
        [Evidence(name="--command", text=f"{FINE} -c 500", is_command=True)],
        timelines=[window(graphs)],
    )
    assert "launch-count-beyond-window" not in [c.code for c in found.causes]


def test_a_timeline_without_kernels_says_why() -> None:
    bare = replace(
        window(),
        sums=(),
        absences=(
            Absence(field="kernels", reason="no kernel was recorded", remedy="--trace=cuda"),
        ),
    )
    found = diagnose([], timelines=[bare])
    assert found.code == "timeline-without-kernels"
    assert found.causes[0].remedies == ("--trace=cuda",)


def window(graphs: pa.Table | None = None) -> TimelineReport:
    """A timeline: gemm three times, softmax twice."""
    times = (("gemm", 3), ("softmax", 2))
    return TimelineReport(
        provenance=Provenance(
            path="w.sqlite",
            sha256="0" * 64,
            size_bytes=1,
            format="nsys-sqlite",
            tool_name="nsys",
            tool_version=None,
        ),
        kernels=empty("kernels"),
        graphs=empty("graphs") if graphs is None else graphs,
        copies=empty("copies"),
        annotations=empty("annotations"),
        sums=tuple(
            KernelTime(name=name, name_full=f"void {name}<float>(float*)", launches=count)
            for name, count in times
        ),
    )


def test_what_the_default_clocks_do_is_said_before_a_run_and_not_after() -> None:
    command = Evidence(name="--command", text=FINE, is_command=True)
    before = diagnose([command])
    assert [cause.code for cause in before.harmless] == ["default-clocks-and-caches"]
    log = Evidence(name="ncu.log", text="==WARNING== No kernels were profiled.\n")
    assert diagnose([command, log]).harmless == ()


def test_the_same_option_is_fine_in_a_release_that_has_it() -> None:
    found = lint("ncu --graph-profiling graph -o r.ncu-rep a.out", "2024.1.1")
    assert found.outcome is Outcome.WELL


def test_options_are_read_in_every_spelling() -> None:
    command = parse("A=1 /opt/x/ncu -c3 -k=regex:a --set=full -o r --csv -f -- a.out -c 9", "here")
    assert command.environment == {"A": "1"}
    assert command.value("launch-count") == "3"
    assert command.value("kernel-name") == "regex:a"
    assert command.value("set") == "full"
    assert command.value("export") == "r"
    assert command.target == ["a.out", "-c", "9"]  # the target's own options are not ncu's


@pytest.mark.parametrize(
    ("target", "wrappers", "real"),
    [
        ("python3 x.py", [], "python3"),
        ("env A=1 B=2 python3 x.py", ["env"], "python3"),
        ("timeout -k 5 60 numactl -N 0 python3 x.py", ["timeout", "numactl"], "python3"),
        ("uv run python3 x.py", ["uv"], "python3"),
        ("torchrun --nproc_per_node=2 x.py", ["torchrun"], "x.py"),
    ],
)
def test_wrappers_are_taken_off_the_target(target: str, wrappers: list[str], real: str) -> None:
    found, rest = real_target(target.split())
    assert found == wrappers
    assert rest[0] == real


def test_commands_are_found_in_a_text_with_continuation_lines() -> None:
    text = (
        "#!/bin/sh\n$ ncu --set full \\\n  -o r python x.py\necho ncu - done\nsudo ncu -c 1 a.out\n"
    )
    found = find(text, "run.sh")
    assert [c.where for c in found] == ["run.sh:2", "run.sh:5"]
    assert found[0].target == ["python", "x.py"]


def test_several_commands_are_judged_each_by_itself() -> None:
    text = "ncu --nvtx-include x/ a.out\nncu --nvtx --nvtx-include x/ a.out\nncu -c 0 a.out\n"
    found = diagnose([Evidence(name="cmds.txt", text=text)])
    assert [c.code for c in found.causes] == ["nvtx-option-forgotten", "launch-count-zero"]
    assert [f.where for c in found.causes for f in c.evidence] == ["cmds.txt:1", "cmds.txt:3"]


def test_what_only_the_shell_knows_is_said_to_be_unread() -> None:
    found = lint("ncu $NCU_OPTS -c 1 python x.py")
    assert "variable-not-read" in [c.code for c in found.harmless]
