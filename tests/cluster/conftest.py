"""A cluster with containers for the tests of this folder, or a skip that says what is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import tools
from tests.cluster.fixture import Cluster


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the real engine out, everywhere, unless its marker is asked for by name."""
    if "engine" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("engine")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def require(faults: list[str]) -> None:
    """Skip where something is missing; fail where the cluster is required."""
    if not faults:
        return
    message = "no test cluster here; missing: " + "; ".join(faults)
    if os.environ.get("SOLSCOPE_REQUIRE_CLUSTER") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One cluster for all tests of the session."""
    require(tools.missing())
    with Cluster() as running:
        yield running
        faults = running.controllers.faults + (running.node.faults() if running.node else [])
    assert not faults, faults[0]


@pytest.fixture
def bare() -> Iterator[Cluster]:
    """A cluster without a node: API and controllers only, no root and no containers needed."""
    require(tools.missing_for_api())
    with Cluster(with_node=False) as running:
        yield running


_made = iter(range(10_000))


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own, deleted afterwards."""
    name = f"t{next(_made)}"
    cluster.make_namespace(name)
    yield name
    cluster.faults.clear()
    cluster.store.webhooks.clear()
    cluster.kubectl("delete", "namespace", name, "--wait=true", "--timeout=120s")
