"""What a capture is asked for, up to the moment in which it would begin. Nothing is made here."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests import captures, sisters
from tests.fakes.cluster import FakeCluster

from solscope.capture import planfile
from solscope.errors import UsageError
from solscope.evidence import bundle as bundles
from solscope.evidence import sealing
from solscope.evidence.redaction import Redactor
from solscope.flows import capture
from solscope.flows.capture import building
from solscope.flows.world import Outcome, World
from solscope.model.evidence import BundleSource
from solscope.model.plan import Strategy

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
MOUNT = {"name": "hub", "mountPath": "/hub"}
VOLUME = {"name": "hub", "secret": {"secretName": "hub-login"}}


def production() -> list[dict[str, Any]]:
    objects = captures.production("prod", None)
    spec = objects[0]["spec"]["template"]["spec"]
    spec["volumes"] = [VOLUME]
    spec["containers"][0]["volumeMounts"] = [MOUNT]
    return objects


def a_world(*more: dict[str, Any]) -> World:
    cluster = FakeCluster([*production(), *more], namespace="prod")
    return World(cluster=lambda *_: cluster, now=lambda: NOON)


def run(folder: Path, world: World, **options: Any) -> Outcome:
    plan = options.pop("plan", None) or captures.a_plan(folder)
    request = capture.CaptureRequest(plan=plan, namespace="prod", **options)
    return capture.run(request, world)


def a_bundle(folder: Path, experiment: str = "mine") -> Path:
    redactor = Redactor(lambda text: text, lambda _: False)
    source = BundleSource(experiment=experiment, family="engine")
    return bundles.init(folder, source, redactor, lambda: NOON).folder


def names(outcome: Outcome) -> list[str]:
    return [line for line in outcome.text.splitlines() if "sister-engine-" in line]


def test_a_dry_run_says_how_to_run_what_it_shows(tmp_path: Path) -> None:
    shown = run(tmp_path, a_world())
    line = shown.text.splitlines()[1]
    assert line.startswith("  run it as shown: add --experiment sol-")
    assert line.endswith(" --yes")
    experiment = line.split()[-2]
    assert names(run(tmp_path, a_world(), experiment=experiment)) == names(shown)
    assert names(run(tmp_path, a_world(), experiment="another")) != names(shown)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--max-model-len 1000", "are 1152 tokens, and the server takes 1000"),
        ("--max-model-len=1k", "the server takes 1000"),
        ("--runner pooling", "answers no completions: --runner pooling"),
        ("--task embed", "answers no completions"),
    ],
)
def test_requests_that_the_server_would_refuse_are_refused_before_it_loads(
    tmp_path: Path, option: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        run(tmp_path, a_world(), server_command=f"vllm serve tiny {option}")


def test_requests_that_just_fit_are_sent(tmp_path: Path) -> None:
    fits = run(tmp_path, a_world(), server_command="vllm serve tiny --max-model-len 2K", isl=1920)
    assert fits.exit_code == 0


def test_a_dry_run_says_what_matches_and_was_accepted(tmp_path: Path) -> None:
    monitor = sisters.an_object("PodMonitor", "all", {"selector": {}})
    monitor["metadata"]["namespace"] = "prod"
    refused = run(tmp_path, a_world(monitor))
    assert refused.exit_code == 1
    shown = run(tmp_path, a_world(monitor), accept=("podmonitor/all",))
    assert shown.exit_code == 0
    assert "accepted though they match: PodMonitor/all (metrics)" in shown.text
    assert "none matches" not in shown.text
    assert "none matches" in run(tmp_path, a_world()).text


def test_a_plan_for_a_harness_is_refused_with_the_verb_that_takes_it(tmp_path: Path) -> None:
    path = captures.a_plan(tmp_path)
    plan = planfile.from_json(path.read_bytes(), where=str(path))
    path.write_bytes(planfile.to_json(replace(plan, strategy=Strategy.HARNESS)))
    with pytest.raises(UsageError, match="replays one operation alone") as caught:
        run(tmp_path, a_world(), plan=path)
    assert "solscope sister --harness" in str(caught.value.hint)


def test_a_bundle_and_its_run_are_of_one_experiment(tmp_path: Path) -> None:
    folder = a_bundle(tmp_path / "b")
    with pytest.raises(UsageError, match="the bundle is of experiment mine, not other"):
        run(tmp_path, a_world(), output=folder, experiment="other")
    shown = run(tmp_path, a_world(), output=folder)
    assert "add --experiment mine --yes" in shown.text


def test_a_sealed_bundle_takes_no_second_capture(tmp_path: Path) -> None:
    folder = a_bundle(tmp_path / "b")
    (folder / building.FOLDER).mkdir()
    (folder / building.SETTINGS).write_text("{}")
    with pytest.raises(UsageError, match="was run into this bundle already") as caught:
        run(tmp_path, a_world(), output=folder, yes=True)
    assert f"--resume {folder}" in str(caught.value.hint)
    sealing.seal(folder, NOON)
    with pytest.raises(UsageError, match="the bundle is sealed"):
        run(tmp_path, a_world(), output=folder, yes=True)


def test_the_source_of_a_bundle_says_who_ran_the_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    world = a_world()
    plan = captures.a_plan(tmp_path)
    request = capture.CaptureRequest(plan=plan, namespace="prod", output=tmp_path / "b", yes=True)
    building.begun(building.build(request, world), world)
    assert "- who: ada\n" in (tmp_path / "b" / "SOURCE.md").read_text()


def test_a_label_that_a_queue_asks_for_can_be_given_to_the_copy(tmp_path: Path) -> None:
    shown = run(tmp_path, a_world(), label=("kueue.x-k8s.io/queue-name=gpus",))
    assert shown.text.count("kueue.x-k8s.io/queue-name: gpus") == 2


def test_a_copy_with_a_secret_volume_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    world = a_world()
    plan = captures.a_plan(tmp_path)
    request = capture.CaptureRequest(plan=plan, namespace="prod", output=tmp_path / "b", yes=True)
    made = building.begun(building.build(request, world), world)
    again = building.resumed(tmp_path / "b", world)
    assert again.stages[0].sister == made.stages[0].sister
    volumes = again.stages[0].sister.objects[-1]["spec"]["template"]["spec"]["volumes"]
    assert VOLUME in volumes


def test_a_copy_whose_secrets_are_masked_is_not_made_from_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A word of the copy is a secret of the one who captures.
    monkeypatch.setenv("MY_PASSWORD", "hub-login")
    world = a_world()
    plan = captures.a_plan(tmp_path)
    request = capture.CaptureRequest(plan=plan, namespace="prod", output=tmp_path / "b", yes=True)
    building.begun(building.build(request, world), world)
    with pytest.raises(UsageError, match="secrets are masked in it") as caught:
        building.resumed(tmp_path / "b", world)
    assert "--cleanup sol-" in str(caught.value.hint)


SCRIPT = 'export HF_TOKEN="$(cat /hub/token)" && exec vllm serve m --port 8000'


def test_a_script_that_reads_its_token_from_a_file_is_copied_as_it_stands(tmp_path: Path) -> None:
    objects = captures.production("prod", None, command=("sh", "-c", SCRIPT))
    cluster = FakeCluster(objects, namespace="prod")
    world = World(cluster=lambda *_: cluster, now=lambda: NOON)
    plan = captures.a_plan(tmp_path)
    request = capture.CaptureRequest(plan=plan, namespace="prod", output=tmp_path / "b", yes=True)
    building.begun(building.build(request, world), world)
    again = building.resumed(tmp_path / "b", world)
    (script,) = building.server_of(again.stages[0].sister)["args"]
    assert script.startswith('export HF_TOKEN="$(cat /hub/token)" && exec env ')
