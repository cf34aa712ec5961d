"""WorkloadSnapshot in, findings and one answer out. Never asks a cluster, never touches a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from solscope.capture.preflight import (
    counters,
    driver,
    injection,
    memory,
    parallel,
    security,
    server,
    serving,
    sharing,
    storage,
    versions,
)
from solscope.capture.preflight.answer import decide
from solscope.model.cluster import WorkloadSnapshot
from solscope.model.finding import Finding
from solscope.model.preflight import Preflight

__all__ = ["examine", "findings"]

_Rule = Callable[[WorkloadSnapshot], Iterator[Finding]]
# The order is the order in which a refusal is named: what no setting can change comes first.
_RULES: tuple[_Rule, ...] = (
    sharing.findings,
    parallel.findings,
    versions.findings,
    counters.findings,
    driver.findings,
    injection.findings,
    security.findings,
    storage.findings,
    server.findings,
    serving.findings,
    memory.findings,
)


def findings(workload: WorkloadSnapshot) -> tuple[Finding, ...]:
    """Everything that bears on a capture, each finding once."""
    first = tuple(sharing.findings(workload))
    if any(item.code == sharing.FOREIGN for item in first):
        # Nothing that is said of NVIDIA's driver and tools would be true there.
        return (*first, *security.findings(workload))
    return tuple(dict.fromkeys(item for rule in _RULES for item in rule(workload)))


def examine(workload: WorkloadSnapshot) -> Preflight:
    """Findings and the answer for one workload."""
    return decide(workload, findings(workload))
