"""Captures in a cluster whose webhooks change pods: nothing may reach the copy, even so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solscope.model.capture import CaptureResult
from tests.cluster.server.status import Json, bad_request
from tests.cluster.test_capture import Requests, Site, site  # noqa: F401

pytestmark = [pytest.mark.cluster, pytest.mark.capture]


def relabel(site: Site, *, takes_dry_runs: bool = True, **labels: str) -> None:  # noqa: F811
    """A webhook that labels the pods of experiments."""

    def act(pod: Json, is_dry_run: bool) -> None:
        if "experiment" not in (pod["metadata"].get("labels") or {}):
            return
        if is_dry_run and not takes_dry_runs:
            raise bad_request('admission webhook "team.example.com" does not support dry run')
        pod["metadata"]["labels"].update(labels)

    site.cluster.store.webhooks.append(act)


def front_selector(site: Site) -> dict[str, str]:  # noqa: F811
    """The labels by which production's Service finds its pods."""
    selector: dict[str, str] = site.cluster.get("services", "front", site.namespace)["spec"][
        "selector"
    ]
    return selector


def test_a_label_by_which_production_would_find_the_copy_is_seen_in_the_rehearsal(
    site: Site,  # noqa: F811
) -> None:
    site.deploy()
    relabel(site, **front_selector(site))
    error = site.failure()
    assert error.receipt == "03-rehearse"
    assert "Service/front" in str(error)
    assert "picks it by that: traffic" in str(error)
    assert "create" not in site.steps()


def test_a_webhook_without_dry_run_is_seen_on_the_pod_before_it_serves(
    site: Site,  # noqa: F811
) -> None:
    site.deploy()
    relabel(site, takes_dry_runs=False, **front_selector(site))
    with Requests(site) as traffic:
        error = site.failure()
    assert error.receipt == "05-start"
    assert "picks it by that: traffic" in str(error)
    assert any("takes no dry run" in text for text in site.said)
    assert site.steps()["cleanup"]
    assert (traffic.sent > 0, traffic.lost) == (True, 0)


def test_what_harms_nothing_is_told_and_the_capture_goes_on(site: Site) -> None:  # noqa: F811
    site.deploy()
    relabel(site, team="serving")

    def mesh(pod: Json, _: bool) -> None:
        if "experiment" in (pod["metadata"].get("labels") or {}):
            proxy: dict[str, Any] = {
                "name": "istio-proxy",
                "image": "example.com/istio/proxyv2:1",
                "command": ["sleep", "1000"],
                "restartPolicy": "Always",
            }
            pod["spec"].setdefault("initContainers", []).append(proxy)

    site.cluster.store.webhooks.append(mesh)
    outcome = site.capture()
    assert outcome.exit_code == 0, outcome.text
    assert isinstance(outcome.value, CaptureResult)
    (told,) = (site.bundle / "commands").glob("*-rehearse.stdout")
    assert json.loads(told.read_text())["admission"] == [
        "added metadata.labels[team]",
        "added spec.initContainers[istio-proxy]",
    ]
    assert any("--label sidecar.istio.io/inject=false" in text for text in site.said)
    assert site.left() == []
