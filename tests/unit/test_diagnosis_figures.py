"""Stated figures are held against the peak that belongs to them, and nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solscope.flows.diagnose import DiagnoseRequest, run
from solscope.flows.world import World
from solscope.model.diagnosis import Diagnosis, Outcome


def told(folder: Path, **files: object) -> Diagnosis:
    """The diagnosis of files: JSON of an object, or a text as it is; ``_`` stands for a dot."""
    paths = []
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        paths.append(str(path))
    found = run(DiagnoseRequest(paths=tuple(paths)), World()).value
    assert isinstance(found, Diagnosis)
    return found


H100 = {"gpu": "NVIDIA H100 80GB HBM3", "dtype": "bf16"}


@pytest.mark.parametrize(
    ("record", "code", "said"),
    [
        ({**H100, "tflops": 742}, "figure-of-peak", "75.0 % of the dense bf16 peak"),
        ({**H100, "gflops": 742_000}, "figure-of-peak", "75.0 % of the dense bf16 peak"),
        ({**H100, "tflops": 742, "peak": 1979}, "sparse-peak-used", "1.979 PFLOP/s is the sparse"),
        ({**H100, "tflops": 1300}, "figure-above-peak", "131.4 % of the dense bf16 peak"),
        ({**H100, "tflops": 1000}, "figure-at-boost", "101.1 % of 989.4 TFLOP/s"),
        ({**H100, "dtype": "torch.float8_e4m3fn", "tflops": 989.4}, "figure-of-peak", "50.0 %"),
        ({"measured": 41.2, "advertised": 40.6}, "advertised-at-boost", "101.5 %"),
        ({"measured": 30, "advertised": 40}, "advertised-plausible", "75.0 %"),
        ({"measured": 80, "advertised": 40}, "advertised-exceeded", "200.0 %"),
        (
            {"kernel": "copy", "gpu": "NVIDIA H100 PCIe", "GBps": 1020},
            "bandwidth-plausible",
            "copy",
        ),
        (
            {"kernel": "copy", "gpu": "NVIDIA H100 PCIe", "gb_per_s": 1020},
            "bandwidth-plausible",
            "copy",
        ),
        ({"tflops": 30, "advertised": 40}, "advertised-plausible", "75.0 %"),
        (
            {**H100, "gflops": 742_000, "peak": 1_979_000},
            "sparse-peak-used",
            "1.979 PFLOP/s is the sparse",
        ),
    ],
)
def test_a_figure_is_held_against_its_own_peak(
    tmp_path: Path, record: dict[str, object], code: str, said: str
) -> None:
    found = told(tmp_path, r_json=record)
    assert found.causes[0].code == code
    assert said in found.causes[0].title


def test_a_gpu_that_no_table_holds_leaves_the_figure_open(tmp_path: Path) -> None:
    found = told(tmp_path, r_json={"gpu": "Some New GPU", "dtype": "bf16", "tflops": 742})
    assert found.outcome is Outcome.UNDECIDED
    assert "no bf16 ceiling is known for Some New GPU" in found.summary
    assert "nvidia-smi" in found.checks[0].do


def test_fp32_work_beyond_the_fp32_peak_is_tf32_only_where_the_tensor_pipe_ran(
    tmp_path: Path,
) -> None:
    record = {"kernel": "matmul", "tflops": 61, "fp32_peak": 19.5, "tf32_peak": 156}
    assert told(tmp_path, a_json={**record, "tensor_pipe_active": 40}).code == "use-tf32-ceiling"
    found = told(tmp_path, b_json=record)
    assert (found.outcome, found.code) == (Outcome.UNDECIDED, "tf32-likely")


def test_bytes_over_time_above_the_peak_of_dram_are_cache_traffic(tmp_path: Path) -> None:
    table = "kernel,model_bytes,us\nconv1d,52428800,22.0\ncopy,15550000,11.0\n"
    found = told(tmp_path, r_csv=table, device_txt="A100-SXM4-40GB 1555 GB/s\n")
    assert found.causes[0].code == "impossible-bandwidth"
    assert "153.3 %" in found.causes[0].title  # 52,428,800 B in 22 us is 2.383 TB/s
    assert "conv1d" in found.causes[0].title


def test_without_a_peak_a_bandwidth_is_not_judged(tmp_path: Path) -> None:
    found = told(tmp_path, r_csv="kernel,model_bytes,us\nconv1d,52428800,22.0\n")
    assert found.code == "nothing-recognised"


def test_a_lookup_table_moves_the_rows_of_its_tokens(tmp_path: Path) -> None:
    shapes = {"model.embed_tokens.weight": [32000, 4096], "lm_head": [32000, 4096]}
    found = told(tmp_path, m_json={**shapes, "dtype_bytes": 2, "batch": 8})
    (cause,) = found.causes
    assert "65536 bytes" in cause.title  # 8 rows x 4096 x 2 bytes
    assert all("lm_head" not in fact.text for fact in cause.evidence)


@pytest.mark.parametrize(
    "record",
    [
        {"apiVersion": "v1", "kind": "Pod", "device": "x", "bytes": 5},
        {"tflops": "fast", "dtype": "bf16"},
        {"tflops": True, "gpu": "NVIDIA H100 80GB HBM3", "dtype": "bf16"},
        {"tflops": 100},
        {"kernel": "copy", "gpu": "NVIDIA H100 PCIe", "gbps": 1020},
        {"kernel": "x", "gpu": "NVIDIA H100 PCIe", "bytes": 1e9, "s": 4096},
        {"bytes_moved": 5, "bf16_peak": 989},
        [1, 2, 3],
    ],
)
def test_what_no_name_tells_is_not_guessed(tmp_path: Path, record: object) -> None:
    assert told(tmp_path, r_json=record).causes == ()
