"""A capture whose process is killed at every step, and gone on with from its bundle alone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from solscope.evidence import receipts, sealing
from solscope.flows import capture
from solscope.flows.world import World
from tests import captures
from tests.cluster.test_capture import Site, site  # noqa: F401

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.capture]

STEPS = (
    "production-before",
    "rights",
    "rehearse",
    "create",
    "start",
    "ready",
    "warm-up",
    "control-probe",
    "open-window",
    "profile",
    "close-window",
    "finish",
    "collect",
    "inspect",
    "tables",
    "observe",
    "cleanup",
    "production-after",
)
# Kills its own process before a step begins, or after its work and before its receipt.
PROGRAM = """
import json, os, pathlib, signal, sys
from solscope.evidence.bundle import Bundle
from solscope.flows import capture
from solscope.flows.world import World
options, step, when = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def say(text):
    if when == "before" and text == step:
        die()
record = Bundle.record
def recorded(self, name, *rest):
    if when == "after" and name == step:
        die()
    return record(self, name, *rest)
Bundle.record = recorded
for key in ("plan", "output", "resume"):
    if key in options:
        options[key] = pathlib.Path(options[key])
capture.run(capture.CaptureRequest(**options), World(say=say))
"""


def run_until(step: str, when: str, options: dict[str, object]) -> int:
    """Run a capture in a process that is killed at ``step``; its exit code."""
    told = json.dumps({k: str(v) if isinstance(v, Path) else v for k, v in options.items()})
    command = [sys.executable, "-c", PROGRAM, told, step, when]
    path = str(Path(__file__).resolve().parents[2] / "src")
    import os

    done = subprocess.run(
        command, capture_output=True, timeout=600, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    return done.returncode


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_capture_that_is_killed_at_every_step_still_comes_to_its_end(
    site: Site,  # noqa: F811
    when: str,
) -> None:
    site.deploy()
    options: dict[str, object] = site.options()
    for step in STEPS:
        run_until(step, when, options)
        options = {"resume": site.bundle}
    outcome = site.run(resume=site.bundle)
    assert outcome.exit_code == 0, outcome.text
    assert site.left() == []
    assert sealing.verify(site.bundle)[1] == ()
    told = [r.step.partition("-")[2] for r in receipts.read(site.bundle) if r.command]
    assert [step for step in told if step in STEPS] == list(STEPS)


def test_a_capture_of_several_runs_goes_on_in_the_run_that_it_was_killed_in(
    site: Site,  # noqa: F811
) -> None:
    site.plan = captures.a_plan(site.folder, kernels=("rms_norm", "flash_fwd"), runs="each")
    site.report = captures.a_report(site.folder, site.plan)
    site.deploy()
    options: dict[str, object] = site.options()
    for step, when in (
        ("remove", "before"),
        ("remove", "after"),
        ("create-2", "after"),
        ("collect-2", "before"),
    ):
        run_until(step, when, options)
        options = {"resume": site.bundle}
    outcome = site.run(resume=site.bundle)
    assert outcome.exit_code == 0, outcome.text
    assert site.left() == []
    assert [s for s in site.steps() if s.startswith("profile")] == ["profile", "profile-2"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_capture_that_is_killed_while_it_attaches_goes_on(
    site: Site,  # noqa: F811
    when: str,
) -> None:
    site.plan = captures.an_attach_plan(site.folder, site.report)
    site.deploy()
    run_until("attach", when, site.options())
    outcome = site.run(resume=site.bundle)
    assert outcome.exit_code == 0, outcome.text
    assert site.left() == []


@pytest.mark.parametrize("step", ["start", "profile", "collect"])
def test_what_a_killed_capture_left_is_removed_without_any_file(
    site: Site,  # noqa: F811
    step: str,
) -> None:
    site.deploy()
    run_until(step, "before", site.options(experiment=f"x-{step}"))
    assert site.left()
    shown = site.run(cleanup=f"x-{step}", namespace=site.namespace)
    assert shown.exit_code == 1
    assert site.left()
    done = site.run(cleanup=f"x-{step}", namespace=site.namespace, yes=True)
    assert done.exit_code == 0
    assert site.left() == []


def test_sigterm_cleans_up(site: Site) -> None:  # noqa: F811
    site.deploy()

    def say(text: str) -> None:
        if text == "warm-up":
            signal.raise_signal(signal.SIGTERM)

    request = capture.CaptureRequest(**site.options())
    with pytest.raises(KeyboardInterrupt):
        capture.run(request, World(say=say))
    assert site.left() == []
    assert site.steps()["cleanup"]
