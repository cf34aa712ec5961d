"""One start of the server under ncu: from the rehearsal of its objects to its reports at home."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from solscope.capture.execution import attaching, collect, pods, scripts, workload
from solscope.capture.execution.journal import Facts, Journal
from solscope.capture.execution.server import Sister, wait_ready
from solscope.capture.execution.spelling import Speller
from solscope.capture.execution.window import Capture
from solscope.cluster.port import Cluster, Conflict
from solscope.errors import CaptureError, ClusterError, SolscopeError
from solscope.model import sister as sisters
from solscope.model.capture import CaptureSettings
from solscope.model.evidence import Receipt
from solscope.model.plan import CapturePlan, Strategy, Window

LAST_WORDS_S = 10.0
RUN_ANNOTATION = "solscope/run"
_SECOND_NCU = (Strategy.ATTACH, Strategy.PRELOAD)


def file_of(name: str, number: int) -> str:
    """A file of the ``number``-th stage: ``logs/server.log``, then ``logs/server-2.log``."""
    stem, dot, suffix = name.rpartition(".")
    return name if number == 1 else f"{stem}-{number}{dot}{suffix}"


@dataclass(slots=True, kw_only=True)
class Stage:
    """The ``number``-th start of the server (from 1) in a run.

    Its steps carry the number from the second stage on. ``tick`` tells people how far it is,
    and may raise where the run must not go on.
    """

    number: int
    plan: CapturePlan
    sister: sisters.Sister
    cluster: Cluster
    settings: CaptureSettings
    journal: Journal
    tick: Callable[[str], None]
    is_foreign: bool = False
    _reached: Sister | None = field(default=None)

    # -- its names -------------------------------------------------------------------------------

    def name(self, step: str) -> str:
        """A step of this stage, as receipts have it."""
        return step if self.number == 1 else f"{step}-{self.number}"

    def answer(self, step: str) -> Facts:
        """What a step of this stage answered. Raises KeyError where it has not ended well."""
        return self.journal.answers[self.name(step)]

    def has(self, step: str) -> bool:
        """Whether a step of this stage has ended well."""
        return self.journal.has(self.name(step))

    @property
    def mark(self) -> str:
        """What tells the objects of this stage from those of another, or of another run."""
        return self.name(self.settings.run)

    @property
    def log_files(self) -> tuple[str, str, str]:
        """Where the bundle keeps what the probe, the server and the second ncu said."""
        names = ("logs/control-probe.log", "logs/server.log", "logs/ncu-attach.log")
        probe, server, second = (file_of(name, self.number) for name in names)
        return probe, server, second

    # -- its steps -------------------------------------------------------------------------------

    def go(
        self,
        rehearse: Callable[[Stage], Facts],
        admit: Callable[[Stage, Mapping[str, Any]], None],
    ) -> None:
        """Every step of the stage; one that ended well before is not done again."""
        say, settings = Speller(self.settings), self.settings
        manifest = file_of("capture/sister.yaml", self.number)
        self._step("rehearse", say.create(manifest, "--dry-run=server"), lambda: rehearse(self))
        self._step("create", say.create(manifest), self._make)
        self._step(
            "start", say.pods("--watch"), lambda: self._started(lambda pod: admit(self, pod))
        )
        if self.plan.strategy in _SECOND_NCU:
            self._step("attach", say.beside(*self.sister.attach_command), self._attach)
        self._step("ready", say.ask("GET", settings.health), self._ready)
        self._step("warm-up", say.ask("POST", "/v1/completions"), self._warm_up)
        self._step("control-probe", say.inside(settings.ncu, "..."), self._probe)
        window = self._window()
        self._step("open-window", say.ask("POST", "/start_profile"), window.open)
        self._step(
            "profile",
            say.ask("POST", "/v1/completions"),
            lambda: window.drive(settings.limits.window_s),
        )
        self._step("close-window", say.ask("POST", "/stop_profile"), window.close)
        self._step("finish", say.inside("kill", "-TERM", "SERVER"), self._finish)
        self._step("collect", say.beside("tail", "-c", "+OFFSET", "REPORT"), self._collect)

    def _step(self, step: str, argv: Sequence[str], action: Callable[[], Facts]) -> None:
        self.journal.once(self.name(step), argv, action)

    def _make(self) -> Facts:
        made = [self._make_one(item) for item in self.sister.objects]
        now = self.journal.bundle.now()
        names = tuple(f"{item['kind']}/{item['name']}, uid {item['uid']}" for item in made)
        self.journal.bundle.receipt(
            Receipt(step="objects-made", begun=now, ended=now, is_ok=True, objects=names)
        )
        return {"made": made}

    def _make_one(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        kind, name = str(item["kind"]), str(item["metadata"]["name"])
        try:
            found = self.cluster.create(item)
        except Conflict:
            # A crash between the creation and its receipt: the object is this stage's own.
            found = self.cluster.get(kind, name)
            annotations = found["metadata"].get("annotations") or {}
            if annotations.get(RUN_ANNOTATION) != self.mark:
                self.is_foreign = True
                raise
        return {"kind": kind, "name": name, "uid": (found.get("metadata") or {}).get("uid")}

    def _started(self, admit: Callable[[Mapping[str, Any]], None]) -> Facts:
        settings = self.settings
        pod = pods.wait_running(
            self.cluster,
            settings.experiment,
            (settings.sister_kind, settings.sister),
            settings.container,
            settings.limits.schedule_s,
            self.tick,
            admit,
        )
        node = (pod.get("spec") or {}).get("nodeName")
        return {"pod": pod["metadata"]["name"], "uid": pod["metadata"].get("uid"), "node": node}

    def _attach(self) -> Facts:
        """Bring the second ncu to the server, which stands still until then."""
        second = attaching.Attaching(
            sister=self._reach(),
            plan=self.plan,
            command=self.sister.attach_command,
            tick=self.tick,
        )
        return second.attach(self.settings.limits.ready_s)

    def _ready(self) -> Facts:
        seconds = wait_ready(self._reach(), self.settings.limits.ready_s, self.tick)
        return {"seconds": round(seconds, 3)}

    def _warm_up(self) -> Facts:
        rounds = workload.warm_up(self._reach(), self.settings.limits.warm_up_s, self.tick)
        return {
            "rounds": len(rounds),
            "tokens_per_s": [round(batch.tokens_per_s, 1) for batch in rounds[-4:]],
            "requests": sum(batch.requests for batch in rounds),
            "failed": sum(batch.failed for batch in rounds),
        }

    def _probe(self) -> Facts:
        keep, path = self.journal.bundle.write, self.log_files[0]
        return self._window().probe(self.settings.ncu, lambda said: keep(path, said))

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
        sister = self._reach()
        there = collect.index(sister)
        if not there:
            raise CaptureError(
                "ncu wrote no report into the results",
                where=f"pod/{sister.pod}:{scripts.RESULTS}",
                hint="its log is in the bundle: `solscope diagnose --bundle` reads it",
            )
        files = [collect.fetch(sister, one, self.journal.bundle, self.tick) for one in there]
        return {"files": [asdict(file) for file in files]}

    # -- what was said ---------------------------------------------------------------------------

    def hear_out(self) -> None:
        """Where the window had been opened and ncu has not ended: let it say why."""
        if self.has("open-window") and not self.has("finish"):
            with contextlib.suppress(SolscopeError):
                self._window().hear_out(min(LAST_WORDS_S, self.settings.limits.finish_s))

    @property
    def _by_engine(self) -> bool:
        return self.plan.launches.window is Window.ENGINE_PROFILER

    def free_clocks(self) -> str | None:
        """Unlock the clocks of a GPU whose ncu hangs or was killed; what is to do where that fails.

        It locks them for each kernel that it profiles, on the GPU and not for its process.
        """
        # Without a window of the engine's own, launches of the start may be profiled.
        first = "open-window" if self._by_engine else "start"
        may_lock = self.has(first) and self.plan.clock_control != "none"
        if not may_lock or self.has("finish"):
            return None
        try:
            if self._window().has_ended_well():
                return None
        except SolscopeError:
            return None  # the pod was deleted: its own hook has freed them
        words = (self.settings.ncu, "--clock-control", "reset")
        try:
            self.journal.take(
                self.name("free-clocks"),
                Speller(self.settings).inside(*words),
                lambda: self._window().free_clocks(self.settings.ncu),
            )
        except SolscopeError:
            node = self.answer("start").get("node") or "its node"
            return (
                f"ncu was killed and may have left the clocks of a GPU of {node} locked: there "
                "`nvidia-smi --reset-gpu-clocks`, or `ncu --clock-control reset`, frees them"
            )
        return None

    def save_logs(self) -> None:
        """Keep what the server and ncu said, as far as it can still be had."""
        if not self.has("start"):
            self._save_early_logs()
            return
        _, server, second = self.log_files
        with contextlib.suppress(ClusterError, CaptureError):
            self.journal.bundle.write(server, self._reach().log())
        if self.plan.strategy in _SECOND_NCU:
            with contextlib.suppress(SolscopeError):
                self.journal.bundle.write(second, self._window().log_text())

    def _save_early_logs(self) -> None:
        with contextlib.suppress(SolscopeError):
            pod = pods.find(self.cluster, self.settings.experiment)
            if pod is None:
                return
            name = str(pod["metadata"]["name"])
            status = pod.get("status") or {}
            places = {
                str(entry["name"]): file_of(f"logs/{entry['name']}.log", self.number)
                for entry in status.get("initContainerStatuses") or ()
            }
            # A server that ended before it was seen to run has said why.
            places[self.settings.container] = self.log_files[1]
            for container, place in places.items():
                with contextlib.suppress(ClusterError):
                    text = pods.log(self.cluster, self.settings.namespace, name, container)
                    if text:
                        self.journal.bundle.write(place, text)

    # -- its pod ---------------------------------------------------------------------------------

    def _reach(self) -> Sister:
        """The sister's pod; the same one as long as it is, for what was read of its log."""
        name = self._pod_name()
        if self._reached is None or self._reached.pod != name:
            self._reached = Sister(cluster=self.cluster, settings=self.settings, pod=name)
        return self._reached

    def _pod_name(self) -> str:
        return str(self.answer("start")["pod"])

    def _window(self) -> Capture:
        return Capture(
            sister=self._reach(), plan=self.plan, tick=self.tick, engine=self.sister.engine
        )
