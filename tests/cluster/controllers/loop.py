"""One thread that runs every controller whenever the store has changed, or time has passed."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from tests.cluster.controllers import housekeeping
from tests.cluster.controllers.jobs import Jobs
from tests.cluster.controllers.workloads import Deployments, ReplicaSets
from tests.cluster.server.store import Store

TICK_S = 0.5
SETTLE_S = 0.02


class Controllers:
    """The controller manager."""

    def __init__(self, store: Store, *, with_scheduler: bool = True) -> None:
        self.store = store
        self.steps: list[Callable[[], None]] = [
            Deployments(store).reconcile,
            ReplicaSets(store).reconcile,
            Jobs(store).reconcile,
            lambda: housekeeping.collect_garbage(store),
            lambda: housekeeping.empty_namespaces(store),
            lambda: housekeeping.report_quotas(store),
            lambda: housekeeping.fill_endpoints(store),
        ]
        if with_scheduler:
            self.steps.append(housekeeping.Scheduler(store).reconcile)
        self.faults: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="controllers")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.is_set():
            seen = self.store.version
            for step in self.steps:
                try:
                    step()
                except Exception:
                    self.faults.append(traceback.format_exc())
            self._stop.wait(SETTLE_S)
            self.store.wait(seen, TICK_S)
