"""The steps of a capture in their order, and what follows when one of them fails."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from solscope.capture.execution import (
    attaching,
    cleanup,
    collect,
    pods,
    production,
    scripts,
    workload,
)
from solscope.capture.execution.journal import Facts, Journal
from solscope.capture.execution.server import SIDECAR, Sister, wait_ready
from solscope.capture.execution.window import Capture
from solscope.cluster.port import Cluster, Conflict, NotFound
from solscope.errors import CaptureError, ClusterError, SolscopeError
from solscope.model import sister as sisters
from solscope.model.capture import CaptureSettings, PodState, WorkloadState
from solscope.model.evidence import Receipt
from solscope.model.plan import CapturePlan, Strategy

WATCH_EVERY_S = 10.0
LOG_FILE, ATTACH_LOG_FILE = "logs/server.log", "logs/ncu-attach.log"
PROBE_LOG_FILE = "logs/control-probe.log"
LAST_WORDS_S = 10.0
RUN_ANNOTATION = "solscope/run"
_RIGHTS = (
    ("create", "jobs.batch"),
    ("delete", "jobs.batch"),
    ("list", "pods"),
    ("delete", "pods"),
    ("get", "pods/log"),
    ("create", "pods/exec"),
)


@dataclass(slots=True)
class Run:
    """One capture on one cluster. ``say`` tells people how far it is."""

    cluster: Cluster
    plan: CapturePlan
    sister: sisters.Sister
    settings: CaptureSettings
    journal: Journal
    ncu: str
    say: Callable[[str], None]
    _watched_at: float = field(default=0.0)
    _is_foreign: bool = field(default=False)
    _sister: Sister | None = field(default=None)

    # -- the way up ----------------------------------------------------------------------------

    def capture(self, rehearse: Callable[[], Facts], inspect: Callable[[], Facts]) -> None:
        """Every step up to reports that are home and usable.

        ``rehearse`` asks the cluster whether it would take the sister, ``inspect`` reads what
        came home; both raise CaptureError. A step that ended well before is not done again.
        """
        step = self.journal.once
        step("production-before", self._kubectl("get", self.settings.workload), self._before)
        step("rights", self._kubectl("auth", "can-i", "--list"), self._rights)
        step("rehearse", self._create("--dry-run=server"), rehearse)
        step("create", self._create(), self._make)
        limits = self.settings.limits
        selector = f"experiment={self.settings.experiment}"
        step("start", self._kubectl("get", "pods", "-l", selector, "--watch"), self._started)
        if self.plan.strategy in (Strategy.ATTACH, Strategy.PRELOAD):
            step("attach", self._exec(SIDECAR, *self.sister.attach_command), self._attach)
        step("ready", self._ask("GET", self.settings.health), self._ready)
        step("warm-up", self._ask("POST", "/v1/completions"), self._warm_up)
        window = self._window()
        step("control-probe", self._exec(None, self.ncu, "..."), self._probe)
        step("open-window", self._ask("POST", "/start_profile"), window.open)
        step(
            "profile",
            self._ask("POST", "/v1/completions"),
            lambda: window.drive(limits.window_s),
        )
        step("close-window", self._ask("POST", "/stop_profile"), window.close)
        step("finish", self._exec(None, "kill", "-TERM", "SERVER"), self._finish)
        step("collect", self._exec(SIDECAR, "tail", "-c", "+OFFSET", "REPORT"), self._collect)
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

    def _make(self) -> Facts:
        made = []
        for item in self.sister.objects:
            made.append(self._make_one(item))
        self._note_objects(made)
        return {"made": made}

    def _make_one(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        kind, name = str(item["kind"]), str(item["metadata"]["name"])
        try:
            found = self.cluster.create(item)
        except Conflict:
            # A crash between the creation and its receipt: the object is this run's own.
            found = self.cluster.get(kind, name)
            if not self._is_own(found):
                self._is_foreign = True
                raise
        return {"kind": kind, "name": name, "uid": (found.get("metadata") or {}).get("uid")}

    def _is_own(self, found: Mapping[str, Any]) -> bool:
        annotations = found["metadata"].get("annotations") or {}
        return bool(annotations.get(RUN_ANNOTATION) == self.settings.run)

    def _note_objects(self, made: Sequence[Mapping[str, Any]]) -> None:
        now = self.journal.bundle.now()
        names = tuple(f"{item['kind']}/{item['name']}, uid {item['uid']}" for item in made)
        self.journal.bundle.receipt(
            Receipt(step="objects-made", begun=now, ended=now, is_ok=True, objects=names)
        )

    def _started(self) -> Facts:
        settings = self.settings
        pod = pods.wait_running(
            self.cluster,
            settings.experiment,
            (settings.sister_kind, settings.sister),
            settings.container,
            settings.limits.schedule_s,
        )
        node = (pod.get("spec") or {}).get("nodeName")
        return {"pod": pod["metadata"]["name"], "uid": pod["metadata"].get("uid"), "node": node}

    def _attach(self) -> Facts:
        """Bring the second ncu to the server, which stands still until then."""
        second = attaching.Attaching(
            sister=self._reached(),
            plan=self.plan,
            command=self.sister.attach_command,
            tick=self._tick,
        )
        return second.attach(self.settings.limits.ready_s)

    def _ready(self) -> Facts:
        seconds = wait_ready(self._reached(), self.settings.limits.ready_s, self._tick)
        return {"seconds": round(seconds, 3)}

    def _warm_up(self) -> Facts:
        rounds = workload.warm_up(self._reached(), self.settings.limits.warm_up_s, self._tick)
        return {
            "rounds": len(rounds),
            "tokens_per_s": [round(batch.tokens_per_s, 1) for batch in rounds[-4:]],
            "requests": sum(batch.requests for batch in rounds),
            "failed": sum(batch.failed for batch in rounds),
        }

    def _probe(self) -> Facts:
        keep = self.journal.bundle.write
        return self._window().probe(self.ncu, lambda said: keep(PROBE_LOG_FILE, said))

    def _finish(self) -> Facts:
        answer = self._window().finish(self.settings.limits.finish_s)
        self.save_logs()
        if not answer["reports"]:
            log = self._window().log()
            raise CaptureError(
                log.errors[0] if log.errors else "ncu ended without a report",
                where=f"pod/{self._pod_name()}",
                hint="the diagnosis beside this says why",
            )
        return answer

    def _collect(self) -> Facts:
        sister = self._reached()
        there = collect.index(sister)
        if not there:
            raise CaptureError(
                "ncu wrote no report into the results",
                where=f"pod/{sister.pod}:{scripts.RESULTS}",
                hint="its log is in the bundle: `solscope diagnose --bundle` reads it",
            )
        files = [collect.fetch(sister, one, self.journal.bundle, self._tick) for one in there]
        return {"files": [asdict(file) for file in files]}

    # -- the way down --------------------------------------------------------------------------

    def hear_out(self) -> None:
        """Where the window had been opened and ncu has not ended: let it say why."""
        if self.journal.has("open-window") and not self.journal.has("finish"):
            with contextlib.suppress(SolscopeError):
                self._window().hear_out(min(LAST_WORDS_S, self.settings.limits.finish_s))

    def save_logs(self) -> None:
        """Keep what the server and ncu said, as far as it can still be had."""
        if not self.journal.has("start"):
            self._save_early_logs()
            return
        with contextlib.suppress(ClusterError):
            self.journal.bundle.write(LOG_FILE, self._reached().log())
        if self.plan.strategy in (Strategy.ATTACH, Strategy.PRELOAD):
            with contextlib.suppress(ClusterError):
                self.journal.bundle.write(ATTACH_LOG_FILE, self._window().log_text())

    def _save_early_logs(self) -> None:
        with contextlib.suppress(SolscopeError):
            pod = pods.find(self.cluster, self.settings.experiment)
            if pod is None:
                return
            name = str(pod["metadata"]["name"])
            for entry in (pod.get("status") or {}).get("initContainerStatuses") or ():
                text = pods.log(self.cluster, self.settings.namespace, name, entry["name"])
                if text:
                    self.journal.bundle.write(f"logs/{entry['name']}.log", text)
            # A server that ended before it was seen to run has said why.
            text = pods.log(self.cluster, self.settings.namespace, name, self.settings.container)
            if text:
                self.journal.bundle.write(LOG_FILE, text)

    @property
    def owns_objects(self) -> bool:
        """Whether this run may have made anything in the cluster."""
        has_tried = any(step.endswith("-create") for step in self.journal.taken)
        return has_tried and not self._is_foreign

    def clean(self) -> Facts:
        """Remove all that the run made, and prove it. Raises CaptureError where it is not."""
        experiment = self.settings.experiment
        selector = f"experiment={experiment}"
        argv = self._kubectl("delete", "jobs,deployments,configmaps,pods", "-l", selector)
        return self.journal.take(
            "cleanup",
            argv,
            lambda: cleanup.remove(self.cluster, experiment, self.settings.limits.cleanup_s),
        )

    def compare_production(self) -> tuple[WorkloadState, tuple[str, ...]]:
        """Production's state after the capture, and what differs from before."""
        before = _state(self.journal.answers["production-before"])
        seen: list[WorkloadState] = []

        def look() -> Facts:
            after = production.read(self.cluster, self.settings.workload)
            seen.append(after)
            return {**asdict(after), "differences": production.differences(before, after)}

        self.journal.take("production-after", self._kubectl("get", self.settings.workload), look)
        return seen[0], production.differences(before, seen[0])

    # -- what the steps share ------------------------------------------------------------------

    def _reached(self) -> Sister:
        """The sister's pod; the same one as long as it is, for what was read of its log."""
        name = self._pod_name()
        if self._sister is None or self._sister.pod != name:
            self._sister = Sister(cluster=self.cluster, settings=self.settings, pod=name)
        return self._sister

    def _pod_name(self) -> str:
        return str(self.journal.answers["start"]["pod"])

    def _window(self) -> Capture:
        return Capture(
            sister=self._reached(), plan=self.plan, tick=self._tick, engine=self.sister.engine
        )

    def _tick(self, text: str) -> None:
        """Say how far it is, and now and then look whether production suffers."""
        self.say(text)
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
        hurt = [text for text in production.differences(before, now) if "pod " in text]
        if hurt:
            raise CaptureError(
                f"production changed meanwhile: {'; '.join(hurt)}",
                where=self.settings.workload,
                hint="the capture is ended as a precaution; look at production first",
            )

    def _kubectl(self, *words: str) -> tuple[str, ...]:
        context = self.settings.context
        named = ("--context", context) if context else ()
        return ("kubectl", *named, "--namespace", self.settings.namespace, *words)

    def _create(self, *words: str) -> tuple[str, ...]:
        return self._kubectl("create", "-f", "capture/sister.yaml", "--validate=strict", *words)

    def _exec(self, container: str | None, *words: str) -> tuple[str, ...]:
        where = f"{self.settings.sister_kind.lower()}/{self.settings.sister}"
        return self._kubectl(
            "exec", where, "-c", container or self.settings.container, "--", *words
        )

    def _ask(self, method: str, path: str) -> tuple[str, ...]:
        url = f"http://127.0.0.1:{self.settings.port}{path}"
        return self._exec(None, "curl", "-X", method, url)


def _state(facts: Facts) -> WorkloadState:
    """A state as a receipt holds it."""
    told = dict(facts)
    pods_told = [PodState(**pod) for pod in told.pop("pods", ())]
    return WorkloadState(**told, pods=tuple(pods_told))
