"""The steps of a capture in their order, and what follows when one of them fails."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from solscope.capture.execution import cleanup, production
from solscope.capture.execution.journal import Facts, Journal
from solscope.capture.execution.spelling import Speller
from solscope.capture.execution.stage import Stage
from solscope.cluster.port import Cluster, NotFound
from solscope.errors import CaptureError, ClusterError
from solscope.model import sister as sisters
from solscope.model.capture import CaptureSettings, PodState, WorkloadState
from solscope.model.plan import CapturePlan

WATCH_EVERY_S = 10.0
REPEAT_EVERY_S = 15.0
_CREATED = re.compile(r"create(?:-\d+)?\Z")
_RIGHTS = (
    ("create", "jobs.batch"),
    ("get", "jobs.batch"),
    ("list", "jobs.batch"),
    ("delete", "jobs.batch"),
    ("get", "pods"),
    ("list", "pods"),
    ("delete", "pods"),
    ("get", "pods/log"),
    ("create", "pods/exec"),
)


@dataclass(slots=True)
class Run:
    """One capture on one cluster: a stage for each start of the server that the plan wants.

    ``sisters`` are the stages' in order. ``say`` tells people how far it is.
    """

    cluster: Cluster
    plan: CapturePlan
    sisters: Sequence[sisters.Sister]
    settings: CaptureSettings
    journal: Journal
    say: Callable[[str], None]
    stages: tuple[Stage, ...] = field(init=False)
    _now: Stage = field(init=False)
    _watched_at: float = field(default=0.0)
    _said: tuple[str, float] = field(default=("", 0.0))

    def __post_init__(self) -> None:
        pairs = zip(self.plan.each(), self.sisters, strict=True)
        self.stages = tuple(
            Stage(
                number=number,
                plan=plan,
                sister=sister,
                cluster=self.cluster,
                settings=self.settings,
                journal=self.journal,
                tick=self._tick,
            )
            for number, (plan, sister) in enumerate(pairs, 1)
        )
        self._now = self.stages[0]

    # -- the way up ----------------------------------------------------------------------------

    def capture(
        self,
        rehearse: Callable[[Stage], Facts],
        admit: Callable[[Stage, Mapping[str, Any]], None],
        inspect: Callable[[], Facts],
    ) -> None:
        """Every step up to reports that are home and usable.

        ``rehearse`` asks the cluster whether it would take a stage's sister, ``admit`` whether the
        pod that was made of it is still the isolated copy, ``inspect`` reads what came home; all
        raise CaptureError. A step that ended well before is not done again.
        """
        say, step = Speller(self.settings), self.journal.once
        step("production-before", say.target(), self._before)
        step("rights", say.kubectl("auth", "can-i", "--list"), self._rights)
        for stage in self.stages:
            self._now = stage
            stage.go(rehearse, admit)
            if stage is not self.stages[-1]:
                # The next stage has objects of the same names, and wants the same GPU.
                step(stage.name("remove"), self._deletion(), self._remove)
        step("inspect", ("solscope", "read", "ncu-profiles"), inspect)

    def _before(self) -> Facts:
        return asdict(production.read(self.cluster, self.settings.workload))

    def _rights(self) -> Facts:
        missing = [
            f"{verb} {resource}"
            for verb, resource in _RIGHTS
            if not self.cluster.can_i(verb, resource)
        ]
        if missing:
            raise CaptureError(
                f"rights are missing: {', '.join(missing)}",
                where=f"namespace {self.settings.namespace}",
                hint="ask the namespace's owner for a role with these verbs",
            )
        return {"allowed": [f"{verb} {resource}" for verb, resource in _RIGHTS]}

    # -- the way down --------------------------------------------------------------------------

    def hear_out(self) -> None:
        """Let ncu say why it failed, where it can still."""
        self._now.hear_out()

    def free_clocks(self) -> str | None:
        """Leave no GPU with locked clocks; what is to do where one may have them still."""
        return self._now.free_clocks()

    def save_logs(self) -> None:
        """Keep what the present stage's server and ncu said."""
        self._now.save_logs()

    @property
    def owns_objects(self) -> bool:
        """Whether this run may have made anything in the cluster."""
        # Not only where there is a receipt: its writing may be what failed.
        has_tried = any(_CREATED.match(step) for step in self.journal.begun)
        return has_tried and not any(stage.is_foreign for stage in self.stages)

    def clean(self) -> Facts:
        """Remove all that the run made, and prove it. Raises CaptureError where it is not."""
        return self.journal.take("cleanup", self._deletion(), self._remove_here)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the context leads to another cluster by now than the one that was begun on.

        Many are called alike (``default``, ``kubernetes-admin@kubernetes``), and a login can
        rewrite one.
        """
        before = self.journal.answers.get("production-before")
        return before is not None and production.is_another(self.cluster, _state(before))

    def _remove_here(self) -> Facts:
        told = self._remove()
        if not told["removed"] and self.is_elsewhere:
            context, namespace = self.settings.context, self.settings.namespace
            raise CaptureError(
                f"nothing of it is there, and {self.settings.workload} is another one than the one "
                "that was copied: the copy may still run in another cluster",
                where=f"context {context}",
                hint="with the kubeconfig that it was begun with: solscope capture --cleanup "
                f"{self.settings.experiment} -n {namespace} --yes",
            )
        return told

    def _remove(self) -> Facts:
        limit_s = self.settings.limits.cleanup_s
        return cleanup.remove(self.cluster, self.settings.experiment, limit_s)

    def _deletion(self) -> tuple[str, ...]:
        return Speller(self.settings).labelled("delete", ",".join(cleanup.KINDS))

    def compare_production(self) -> tuple[WorkloadState, tuple[str, ...]]:
        """Production's state after the capture, and what differs from before."""
        before = _state(self.journal.answers["production-before"])
        seen: list[WorkloadState] = []

        def look() -> Facts:
            after = production.read(self.cluster, self.settings.workload)
            seen.append(after)
            return {**asdict(after), "differences": production.differences(before, after)}

        self.journal.take("production-after", Speller(self.settings).target(), look)
        return seen[0], production.differences(before, seen[0])

    def _tick(self, text: str) -> None:
        """Say how far it is, and now and then look whether production suffers."""
        last, said_at = self._said
        if text != last or time.monotonic() - said_at >= REPEAT_EVERY_S:
            self.say(text)
            self._said = (text, time.monotonic())
        if time.monotonic() - self._watched_at < WATCH_EVERY_S:
            return
        self._watched_at = time.monotonic()
        try:
            now = production.read(self.cluster, self.settings.workload)
        except NotFound:
            raise
        except ClusterError:
            return  # a lost network is not production's; the step's own limit bounds it
        before = _state(self.journal.answers["production-before"])
        hurt = production.disturbances(before, now)
        if hurt:
            raise CaptureError(
                f"production changed meanwhile: {'; '.join(hurt)}",
                where=self.settings.workload,
                hint="the capture is ended as a precaution; look at production first",
            )


def _state(facts: Facts) -> WorkloadState:
    """A state as a receipt holds it."""
    told = dict(facts)
    pods_told = [PodState(**pod) for pod in told.pop("pods", ())]
    return WorkloadState(**told, pods=tuple(pods_told))
