"""The native reader against NVIDIA's own module, over every report of the corpus."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests import corpus

import solscope
from solscope.model.report import KernelLaunch, MetricValue

pytestmark = pytest.mark.corpus

OPENS = [r for r in corpus.records("ncu-rep") if r["ncu_report_2026_3_1"]["opens"]]


def test_the_corpus_is_there_and_every_report_opens_in_nvidias_module() -> None:
    corpus.require(corpus.CORPUS)
    assert len(corpus.records("ncu-rep")) == 77
    assert len(OPENS) == 77  # none is skipped below


def same(ours: MetricValue, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        kind = theirs["nonfinite"]
        return isinstance(ours, float) and not math.isfinite(ours) and kind in str(ours).lower()
    if isinstance(theirs, str) or isinstance(ours, str):
        return ours == theirs
    return float(ours) == float(theirs)


def differences(launch: KernelLaunch, golden: dict[str, Any]) -> list[str]:
    metrics, valueless = launch.metrics, set(launch.metrics.valueless())
    wrong = []
    for name, expected in golden["metrics"].items():
        value = metrics.get(name)
        if name in valueless:
            # NVIDIA's module gives 0 (or None) for an entry without a stored aggregate.
            if value is not None or expected["v"] not in (0, 0.0, None, ""):
                wrong.append(f"{name}: valueless, but NVIDIA says {expected['v']}")
        elif value is None or not same(value, expected["v"]):
            wrong.append(f"{name}: {value!r}, NVIDIA says {expected['v']!r}")
        if len(metrics.instances(name)) != expected["n"]:
            wrong.append(f"{name}: {len(metrics.instances(name))} of {expected['n']} instances")
    return wrong


@pytest.mark.parametrize("record", OPENS, ids=[r["file"].split("/", 1)[1] for r in OPENS])
def test_names_values_and_instances_equal_nvidias(record: dict[str, Any]) -> None:
    report = solscope.read(str(corpus.CORPUS / record["file"]))
    golden = corpus.golden(record, "metrics_json")
    actions = [action for group in golden["ranges"] for action in group["actions"]]
    assert len(report.launches) == record["results"] == len(actions)
    assert report.complete
    assert not report.issues
    for launch, action in zip(report.launches, actions, strict=True):
        assert {*launch.metrics, *launch.metrics.valueless()} == set(action["metrics"])
        assert differences(launch, action) == []
        assert launch.name_full == (action["demangled"] or action["name"])
        assert {s.identifier for s in launch.details.sections()} == set(action["sections"])


@pytest.mark.parametrize(
    "fragment", ["vec_add", "R_decode_c1_out2k", "manual_nvtx", "reduce_v5_once"]
)
def test_every_instance_equals_what_nvidias_module_gives(fragment: str, tmp_path: Any) -> None:
    oracle = pytest.importorskip("ncu_report", reason="the oracle extra is not installed")
    path = corpus.find(fragment)
    plain = tmp_path / "plain.ncu-rep"
    plain.write_bytes(corpus.raw(path))
    actions = [action for group in oracle.load_report(str(plain)) for action in group]
    launches = solscope.read(str(plain)).launches
    compared = 0
    for launch, action in zip(launches, actions, strict=True):
        for name in action.metric_names():
            theirs = action.metric_by_name(name)
            ours = launch.metrics.instances(name)
            for index, instance in enumerate(ours):
                if instance.value is not None:
                    assert same(instance.value, theirs.value(index)), (name, index)
                if theirs.has_correlation_ids() and instance.correlation_id is not None:
                    assert same(instance.correlation_id, theirs.correlation_ids().value(index))
                compared += 1
    assert compared > 100


def test_nvtx_ranges_are_those_that_nvidia_prints() -> None:
    report = solscope.read(str(corpus.find("manual_nvtx")))
    names = [[r.name for r in launch.details.nvtx()] for launch in report.launches]
    golden = corpus.golden(
        next(r for r in corpus.records("ncu-rep") if "manual_nvtx" in r["file"]), "raw_csv"
    )
    assert all(names)
    for launch_names in names:
        assert all(name in golden for name in launch_names)


@pytest.mark.parametrize("record", OPENS, ids=[r["file"].split("/", 1)[1] for r in OPENS])
def test_tool_version_and_device_are_the_manifests(record: dict[str, Any]) -> None:
    report = solscope.read(str(corpus.CORPUS / record["file"]))
    version = record.get("ncu_version")
    if version is None:
        assert report.provenance.tool_version is None
    else:
        assert report.provenance.tool_version is not None
        assert report.provenance.tool_version.startswith(version)
    assert [device.name for device in report.devices] == record["gpu"]
    assert ["{}.{}".format(*device.compute_capability) for device in report.devices] == record["cc"]


def test_rule_advice_carries_ncus_own_estimated_speed_up() -> None:
    launch = solscope.read(str(corpus.find("2025-04-21_v2-float4"))).launches[0]
    advice = {a.rule: a for a in launch.details.rules() if a.speedup_pct is not None}
    assert advice["CPIStall"].speedup_kind == "global"
    assert advice["CPIStall"].speedup_pct == pytest.approx(10.7757, abs=1e-4)
    assert advice["IssueSlotUtilization"].speedup_kind == "local"
