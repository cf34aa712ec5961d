"""Captures by every kind of window, of other engines, and of several kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solscope.flows import analyze, sister
from solscope.flows.world import World
from solscope.model.capture import CaptureResult
from tests import captures
from tests.cluster import tools
from tests.cluster.test_capture import Site, site  # noqa: F401

pytestmark = [pytest.mark.cluster, pytest.mark.capture]

FLASH = "flash_fwd_kernel"
SGLANG = {
    "image": "example.com/sglang:v0.5.6",
    "command": ("sglang", "serve", "--model-path", "tiny", "--port", "8000"),
}


def captured(site: Site, **options: Any) -> CaptureResult:  # noqa: F811
    outcome = site.capture(**options)
    assert outcome.exit_code == 0, outcome.text
    assert site.left() == []
    assert isinstance(outcome.value, CaptureResult)
    assert outcome.value.is_sealed
    return outcome.value


def answer(site: Site, step: str) -> dict[str, Any]:  # noqa: F811
    (path,) = (site.bundle / "commands").glob(f"*-{step}.stdout")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def log(site: Site, name: str = "server") -> str:  # noqa: F811
    return (site.bundle / f"logs/{name}.log").read_text()


def test_an_older_kubectl_captures_too(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = tools.kubectl_path(tools.OLD)
    monkeypatch.setenv("SOLSCOPE_KUBECTL", str(older))
    site.deploy()
    assert captured(site).kernels == 2


def test_an_nvtx_range_is_the_window_where_the_plan_names_one(site: Site) -> None:  # noqa: F811
    site.plan = captures.a_plan(site.folder, window=None, nvtx=("decode_step",))
    site.deploy(STANDIN_NVTX="decode_step")
    assert captured(site).kernels == 2
    assert answer(site, "open-window")["window"] == "nvtx"
    assert "/start_profile" not in log(site)


def test_a_range_that_never_comes_is_told_with_what_to_look_at(site: Site) -> None:  # noqa: F811
    site.plan = captures.a_plan(site.folder, window=None, nvtx=("decode_step",))
    site.deploy()
    error = site.failure(window_limit=3.0)
    assert error.receipt == "10-profile"
    assert "no launch matched" in str(error)
    assert "NVTX range decode_step/" in str(error.hint)


def test_a_count_of_skipped_launches_is_a_window_too(site: Site) -> None:  # noqa: F811
    site.plan = captures.a_plan(site.folder, window=None, skip=40)
    site.deploy()
    assert captured(site).kernels == 2
    assert answer(site, "open-window")["window"] == "launch-skip"
    assert "/start_profile" not in log(site)


def test_sglang_is_asked_for_the_cuda_profiler(site: Site) -> None:  # noqa: F811
    site.deploy(**SGLANG)
    assert captured(site).kernels == 2
    assert "POST /start_profile" in log(site)


def test_several_kernels_come_home_from_one_run(site: Site) -> None:  # noqa: F811
    site.plan = captures.a_plan(site.folder, kernels=("rms_norm", "flash_fwd"))
    site.deploy()
    result = captured(site)
    assert answer(site, "profile")["kernels"] >= 4
    assert log(site).count('Profiling "flash_fwd_kernel"') >= 2
    # The stand-in's report holds one of the two: what is missing is said, not passed over.
    assert [f.fact for f in result.findings] == ["no launch of flash_fwd within the window"]


def test_each_kernel_has_a_run_of_its_own_where_the_plan_says_so(site: Site) -> None:  # noqa: F811
    site.plan = captures.a_plan(site.folder, kernels=("rms_norm", "flash_fwd"), runs="each")
    folder = site.folder / "ready"
    folder.mkdir()
    for kernel in (captures.KERNEL, FLASH):
        captures.a_report(folder, site.plan, kernel=kernel, name=f"{kernel}.ncu-rep")
    site.report = folder
    site.deploy()
    result = captured(site)
    assert (result.kernels, len(result.files), result.findings) == (4, 2, ())
    reports = [str(path) for path in (site.bundle / "ncu-profiles").glob("*.ncu-rep")]
    analysis = analyze.run(analyze.AnalyzeRequest(paths=tuple(reports)), World()).value
    assert {row.totals.name for row in analysis.kernels} == {captures.KERNEL, FLASH}
    steps = site.steps()
    assert list(steps).index("remove") < list(steps).index("rehearse-2")
    assert {"create-2", "profile-2", "collect-2", "inspect", "cleanup"} <= set(steps)
    assert FLASH in log(site, "server-2")
    assert FLASH not in log(site).replace("regex:flash_fwd", "")


def test_a_second_run_that_fails_leaves_nothing_either(site: Site) -> None:  # noqa: F811
    site.plan = captures.a_plan(site.folder, kernels=("rms_norm", "no_such_kernel"), runs="each")
    site.deploy()
    error = site.failure(window_limit=4.0)
    assert "no launch matched" in str(error)
    assert str(error.receipt).endswith("-profile-2")
    assert site.steps()["collect"]


def test_a_preload_that_opens_no_endpoint_is_given_up_before_the_server(
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from solscope.capture.execution import attaching

    monkeypatch.setattr(attaching, "_PRELOAD_LIMIT_S", 2.0)
    site.plan = captures.a_plan(site.folder, strategy="preload")
    site.deploy()
    error = site.failure()
    assert "nothing listens on 127.0.0.1:49152" in str(error)
    assert str(error.receipt).endswith("-attach")
    assert "ready" not in site.steps()


def test_an_engine_without_the_endpoint_is_refused_it_before_anything_is_made(
    site: Site,  # noqa: F811
) -> None:
    site.deploy(
        image="example.com/tensorrt-llm:1.2", command=("trtllm-serve", "tiny", "--port", "8000")
    )
    outcome = site.capture()
    assert outcome.exit_code == 1
    assert "sister-window-never-opens" in outcome.text
    assert not site.bundle.exists()
    site.plan = captures.a_plan(site.folder, window=None, skip=40)
    assert captured(site).kernels == 2


def test_a_sister_of_a_plan_of_several_runs_is_the_first_run_s(
    site: Site,  # noqa: F811
    tmp_path: Path,
) -> None:
    site.plan = captures.a_plan(site.folder, kernels=("rms_norm", "flash_fwd"), runs="each")
    site.deploy()
    request = sister.SisterRequest(
        workload="deploy/engine", plan=site.plan, namespace=site.namespace, output=tmp_path
    )
    outcome = sister.run(request, World())
    assert "sister-first-run-only" in outcome.text
    assert "regex:rms_norm" in (tmp_path / "sister.yaml").read_text()
