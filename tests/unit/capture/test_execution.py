"""The parts of a run that need no cluster: transfer, clean-up, logs, steadiness, one JSON key."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builder, sisters
from tests.captures import a_capture_settings
from tests.fakes.cluster import FakeCluster

from solscope.capture.execution import (
    cleanup,
    collect,
    perfbench,
    pods,
    production,
    profiler_log,
    workload,
)
from solscope.capture.execution.server import Sister
from solscope.cluster.port import ExecResult, Unreachable
from solscope.cluster.secrecy import is_secret_name, masked
from solscope.errors import CaptureError
from solscope.evidence import bundle as bundles
from solscope.evidence.redaction import Redactor
from solscope.flows.capture import reading
from solscope.model.evidence import BundleSource
from solscope.reports import formats

MIB = 1 << 20


@pytest.fixture
def bundle(tmp_path: Path) -> bundles.Bundle:
    source = BundleSource(experiment="x", family="engine")
    redactor = Redactor(masked, is_secret_name)
    return bundles.init(tmp_path / "b", source, redactor, lambda: datetime.now(UTC))


class Streams(FakeCluster):
    """Serves one file; ``spoil`` may cut or lose any answer."""

    def __init__(self, data: bytes, spoil: Callable[[bytes], ExecResult]) -> None:
        super().__init__([])
        self.data, self.spoil = data, spoil
        self.asked = 0

    def exec(
        self,
        pod: str,
        container: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
    ) -> ExecResult:
        self.asked += 1
        begin, count = int(command[-2]) - 1, int(command[-1])
        return self.spoil(self.data[begin : begin + count])


def whole(data: bytes) -> ExecResult:
    return ExecResult(stdout=data, stderr="", exit_code=0)


def fetch(cluster: FakeCluster, data: bytes, bundle: bundles.Bundle, **changes: Any) -> Path:
    sha256 = hashlib.sha256(data).hexdigest()
    told = {"name": "r.ncu-rep", "sha256": sha256, "size_bytes": len(data), **changes}
    sister = Sister(cluster=cluster, settings=a_capture_settings(), pod="p")
    file = collect.fetch(sister, collect.Remote(**told), bundle, lambda _: None)
    return bundle.folder / file.artifact.path


# -- collection ------------------------------------------------------------------------------------


def test_a_stream_cut_at_ten_random_offsets_comes_home_whole(
    bundle: bundles.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect.time, "sleep", lambda _: None)
    chance = random.Random(7)
    data = chance.randbytes(64 * MIB)
    cuts = [True] * 10 + [False] * 6
    chance.shuffle(cuts)

    def spoil(part: bytes) -> ExecResult:
        if not (cuts and cuts.pop()):
            return whole(part)
        return ExecResult(
            stdout=part[: chance.randrange(len(part))], stderr="unexpected EOF", exit_code=1
        )

    cluster = Streams(data, spoil)
    assert fetch(cluster, data, bundle).read_bytes() == data
    assert not cuts
    assert cluster.asked > 64 // 4
    assert not list((bundle.folder / "ncu-profiles").glob(".part-*"))


def test_a_network_that_stays_away_ends_the_transfer_and_keeps_what_came(
    bundle: bundles.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect.time, "sleep", lambda _: None)
    data = bytes(range(256)) * 100
    answers = [whole(data[:1000])]

    def spoil(_: bytes) -> ExecResult:
        if answers:
            return answers.pop()
        raise Unreachable("no answer")

    with pytest.raises(CaptureError, match="stands still at 1000 of 25600 bytes"):
        fetch(Streams(data, spoil), data, bundle)
    # Gone on with later: only the rest is asked for.
    cluster = Streams(data, whole)
    assert fetch(cluster, data, bundle).read_bytes() == data
    assert cluster.asked == 1


def test_a_report_that_is_home_already_is_named_as_a_source(bundle: bundles.Bundle) -> None:
    data = b"NVR" * 1000
    (bundle.folder / "ncu-profiles/r.ncu-rep").write_bytes(data)
    fetch(Streams(data, whole), data, bundle)
    told = json.loads((bundle.folder / "capture_sources.json").read_text())
    assert told == {"captured_sources": ["ncu"]}


def test_bytes_that_change_on_the_way_are_never_kept(bundle: bundles.Bundle) -> None:
    data = b"NVR" * 1000

    def spoil(part: bytes) -> ExecResult:
        return whole(b"X" + part[1:])

    with pytest.raises(CaptureError, match="differs from what lies in the sister, twice"):
        fetch(Streams(data, spoil), data, bundle)
    assert not (bundle.folder / "ncu-profiles/r.ncu-rep").exists()


def test_a_full_disk_says_how_much_room_is_needed(
    bundle: bundles.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(collect, "_download", full)
    with pytest.raises(CaptureError, match="No space left on device") as caught:
        fetch(Streams(b"abc", whole), b"abc", bundle)
    # The copy is deleted by then: there is nothing to go on with.
    assert caught.value.hint == "3 bytes are needed twice; make room, then capture again"


# -- clean-up --------------------------------------------------------------------------------------


def labelled(kind: str, name: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": "prod", "uid": name, "labels": labels},
    }


def test_only_what_a_sister_left_is_removed() -> None:
    mark = {"experiment": "x", "solscope-sister": "1"}
    objects = [
        labelled("Job", "sister", **mark),
        labelled("Pod", "sister-1", **mark),
        labelled("Job", "of-somebody-else", experiment="x"),
        labelled("Pod", "another-experiment", experiment="y", **{"solscope-sister": "1"}),
    ]
    cluster = FakeCluster(objects, namespace="prod")
    told = cleanup.remove(cluster, "x", 5.0)
    assert told["removed"] == {"Job/sister": "sister", "Pod/sister-1": "sister-1"}
    left = [item["metadata"]["name"] for item in cluster.objects]
    assert left == ["of-somebody-else", "another-experiment"]


def test_what_cannot_be_removed_is_named_with_the_command_that_would() -> None:
    class Stuck(FakeCluster):
        def delete(self, kind: str, name: str, **_: Any) -> None:
            return

    item = labelled("Job", "sister", experiment="x", **{"solscope-sister": "1"})
    with pytest.raises(CaptureError, match="still there after 0 s: Job/sister") as caught:
        cleanup.remove(Stuck([item], namespace="prod"), "x", 0.0)
    assert caught.value.hint == "solscope capture --cleanup x -n prod --yes"


# -- what production must keep ---------------------------------------------------------------------


def test_a_restart_of_production_is_a_difference() -> None:
    def state(restarts: int, is_ready: bool) -> Any:
        pod = production.PodState(name="p", uid="u", ready=is_ready, restarts=restarts)
        return production.WorkloadState(
            workload="deploy/engine", generation=1, replicas=1, ready_replicas=1, pods=(pod,)
        )

    assert production.differences(state(0, True), state(0, True)) == ()
    assert production.differences(state(0, True), state(2, False)) == (
        "pod p restarted: 0 -> 2",
        "pod p is not ready any more",
    )


@pytest.mark.parametrize(
    ("status", "said", "is_final"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "low on disk"}, "Evicted: low", True),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]},
            "no node takes it: 0/1 nodes",
            False,
        ),
        (
            {
                "containerStatuses": [
                    {"name": "v", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
                ]
            },
            "container v ended with exit code 137 (OOMKilled)",
            True,
        ),
    ],
)
def test_trouble_of_a_pod_is_told_in_the_clusters_words(
    status: dict[str, Any], said: str, is_final: bool
) -> None:
    found = pods.of_pod({"status": status})
    assert found is not None
    assert said in found.what
    assert (found.patience_s == 0) is is_final


# -- what ncu says, when throughput is steady ------------------------------------------------------


def test_progress_is_read_from_lines_that_the_server_broke() -> None:
    text = (
        '==PROF== Profiling "gemm" - 0: 0%INFO: served\n....50%....100% - 8 passes\n'
        '==PROF== Profiling "gemm" - 1: 0%....50%'
    )
    found = profiler_log.read(text)
    assert (found.kernels, found.passes, found.now) == (1, (8,), "gemm")


def test_the_exit_code_of_a_server_that_was_ended_is_no_error() -> None:
    text = "==ERROR== The application returned an error code (143).\n==ERROR== Unknown Error"
    assert profiler_log.read(text).errors == ("Unknown Error",)


def rounds(*rates: int, failed: int = 0) -> list[workload.Batch]:
    return [workload.Batch(seconds=1.0, tokens=n, requests=2, failed=failed) for n in rates]


def test_throughput_that_still_rises_is_not_steady() -> None:
    assert not workload.is_steady(rounds(10, 20, 40, 80))
    assert workload.is_steady(rounds(10, 100, 99, 101, 100))
    assert not workload.is_steady(rounds(100, 100, 100, 100, failed=1))


def test_noise_around_a_plateau_is_steady_in_the_end() -> None:
    noisy = [80, 120] * 8
    assert not workload.is_steady(rounds(*noisy))
    assert workload.is_plateau(rounds(*noisy))
    assert not workload.is_plateau(rounds(*range(10, 170, 10)))


# -- one key of a file that others own -------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{"kernel_internals": {"a": 1}}'),
        ('{"b": 1.50e3}\n', '{"b": 1.50e3, "kernel_internals": {"a": 1}}\n'),
        (
            '{\n  "b": [1,2],\n  "c": "é\\u00e9"\n}\n',
            '{\n  "b": [1,2],\n  "c": "é\\u00e9",\n  "kernel_internals": {\n    "a": 1\n  }\n}\n',
        ),
        (
            '{"kernel_internals": null, "z": 0.10}',
            '{"kernel_internals": {"a": 1}, "z": 0.10}',
        ),
        # Another tool's own order, spacing, numbers, escapes and line ends are its own affair.
        (
            '\n {"z" :1.0E+02 ,"a":-0.0,\t"b" : [ 1 , 2 ] }  \n\n',
            '\n {"z" :1.0E+02 ,"a":-0.0,\t"b" : [ 1 , 2 ],\t"kernel_internals": {"a": 1} }  \n\n',
        ),
        (
            '{\r\n  "b": 1.10\r\n}\r\n',
            '{\r\n  "b": 1.10,\r\n  "kernel_internals": {\r\n    "a": 1\r\n  }\r\n}\r\n',
        ),
        (
            '{"b": 1, "b": 2, "\\u0062": "\\ud83d\\ude00😀", "n": 12345678901234567890.123}',
            '{"b": 1, "b": 2, "\\u0062": "\\ud83d\\ude00😀", "n": 12345678901234567890.123, '
            '"kernel_internals": {"a": 1}}',
        ),
        (
            '{"kernel_internals": 0, "b": {"kernel_internals": 5}, "kernel_internals": 1}',
            '{"kernel_internals": {"a": 1}, "b": {"kernel_internals": 5}, '
            '"kernel_internals": {"a": 1}}',
        ),
        (
            '{"kernel\\u005finternals": 7, "b": 1}',
            '{"kernel\\u005finternals": {"a": 1}, "b": 1}',
        ),
    ],
)
def test_only_one_value_of_the_file_changes(before: str, after: str) -> None:
    assert perfbench.put(before, {"a": 1}, where="f") == after


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1', '{"a" 1}', '{"a": 1} x', '{"a": 1,}'])
def test_what_is_no_json_object_is_left_alone(text: str) -> None:
    with pytest.raises(CaptureError, match="not a JSON object"):
        perfbench.put(text, {}, where="f")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=4), _VALUES, max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
)
def test_every_other_key_keeps_its_value(
    document: dict[str, Any], indent: int | str | None, is_there: bool
) -> None:
    if is_there:
        document = {**document, perfbench.KEY: [1, {"x": 2}]}
    text = json.dumps(document, indent=indent)
    made = perfbench.put(text, {"new": [1]}, where="f")
    assert json.loads(made) == {**document, perfbench.KEY: {"new": [1]}}
    assert perfbench.put(made, {"new": [1]}, where="f") == made


def test_a_report_of_another_gpu_than_planned_is_named(tmp_path: Path) -> None:
    device = builder.Device(name="NVIDIA A100-SXM4-80GB", capability=(8, 0), sms=108)
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(builder.report([builder.Kernel("k")], device=device))
    found = [reading.counters(formats.read(str(path)))]
    planned = sisters.a_plan(compute_capability="9.0")
    assert reading.other_gpus(planned, found) == ["NVIDIA A100-SXM4-80GB (8.0)"]
    assert reading.other_gpus(sisters.a_plan(compute_capability="8.0"), found) == []
    # Where the plan says none, nothing can be told.
    assert reading.other_gpus(sisters.a_plan(), found) == []
