"""One pod's life on the node, from its sandbox to its last status."""

from __future__ import annotations

import subprocess
import threading
import time
import traceback
from pathlib import Path

from tests.cluster.controllers import objects
from tests.cluster.controllers.jobs import seconds_since
from tests.cluster.node.container import Container, Starter, backoff_s
from tests.cluster.node.images import Images
from tests.cluster.node.probes import Prober
from tests.cluster.node.runtime import Runc
from tests.cluster.node.sandbox import Sandbox, Volumes
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store, timestamp

TICK_S = 0.1


class PodWorker:
    """Runs one pod in a thread of its own until the object is gone."""

    def __init__(self, store: Store, runc: Runc, images: Images, pod: Json, address: str) -> None:
        self.store, self.runc, self.images = store, runc, images
        self.namespace, self.name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self.uid = pod["metadata"]["uid"]
        self.address = address
        self.started_at = timestamp()
        self.containers: dict[str, Container] = {}
        self.sandbox: Sandbox | None = None
        self.stop = threading.Event()
        self.faults: list[str] = []
        self.end: Json = {}
        self.evicted: str | None = None
        self._probers: dict[str, Prober] = {}
        self._home = runc.folder / "pods" / self.uid
        self._logs: Path = runc.folder / "logs" / self.uid
        self.thread = threading.Thread(target=self._run, daemon=True, name=f"pod-{self.name}")

    def _pod(self) -> Json | None:
        pod = self.store.get(objects.PODS, self.namespace, self.name)
        return pod if pod is not None and pod["metadata"]["uid"] == self.uid else None

    def _run(self) -> None:
        try:
            self.sandbox = Sandbox(self._home)
            volumes = Volumes(self.store, self.images, self._home, self.runc.folder / "claims")
            self._starter = Starter(self.store, self.runc, self.images, self.sandbox, volumes)
            while not self.stop.is_set():
                pod = self._pod()
                if pod is None:
                    break
                if pod["metadata"].get("deletionTimestamp"):
                    self._terminate(pod["metadata"].get("deletionGracePeriodSeconds", 30))
                    self._publish(pod)
                    self._remove(pod)
                    break
                self._step(pod)
                self._publish(pod)
                self.stop.wait(TICK_S)
        except Exception:
            self.faults.append(traceback.format_exc())
        finally:
            self._clean()

    def _step(self, pod: Json) -> None:
        if self.end:
            return
        if self.evicted is not None:
            self._terminate(0)
            self.end = {"phase": "Failed", "reason": "Evicted", "message": self.evicted}
            self._tell(pod, "Evicted", self.evicted, "Warning")
            return
        limit = pod["spec"].get("activeDeadlineSeconds")
        if limit is not None and seconds_since(self.started_at) >= limit:
            self._terminate(pod["spec"].get("terminationGracePeriodSeconds", 30))
            words = "Pod was active on the node longer than the specified deadline"
            self.end = {"phase": "Failed", "reason": "DeadlineExceeded", "message": words}
            return
        for container in self.containers.values():
            if container.poll():
                self._after_exit(container)
        if self._initialise(pod):
            for spec in pod["spec"]["containers"]:
                self._keep(pod, self._container("containers", spec))
            for spec in pod["spec"].get("ephemeralContainers") or []:
                self._keep_ephemeral(pod, spec)
        for container in self.containers.values():
            self._probe(pod, container)
        self._finish(pod)

    def _container(self, kind: str, spec: Json) -> Container:
        known = self.containers.get(spec["name"])
        if known is None:
            known = self.containers[spec["name"]] = Container(kind, spec, self._logs)
        return known

    def _initialise(self, pod: Json) -> bool:
        for spec in pod["spec"].get("initContainers") or []:
            container = self._container("initContainers", spec)
            self._keep(pod, container)
            if container.is_sidecar:
                if not (container.is_running and container.is_started):
                    return False
            elif container.exit_code != 0:
                return False
        return True

    def _keep(self, pod: Json, container: Container) -> None:
        """Start a container that should run and does not."""
        if container.is_running or time.monotonic() < container.due:
            return
        code = container.exit_code
        if code is not None:
            if not self._restarts(pod, container, code):
                return
            container.last_state = container.state
            self.runc.remove(container.identifier)
            container.restarts += 1
        self._start(pod, container)

    @staticmethod
    def _restarts(pod: Json, container: Container, code: int) -> bool:
        if container.is_sidecar:
            return True
        policy = pod["spec"].get("restartPolicy", "Always")
        if container.kind == "initContainers":
            return code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    def _start(self, pod: Json, container: Container, target: str | None = None) -> None:
        fault = self._starter.start({**pod, "status": self._address()}, container, target)
        if fault is not None:
            waiting = container.state["waiting"]
            self._tell(pod, fault, f"{waiting['reason']}: {waiting.get('message', '')}", "Warning")
            return
        assert self.sandbox is not None
        identifier = container.identifier
        self._probers[container.name] = Prober(
            container, self.sandbox.connect, lambda command: self.runc.exec(identifier, command)
        )
        self._tell(pod, "Started", f"Started container {container.name}", "Normal")

    def _keep_ephemeral(self, pod: Json, spec: Json) -> None:
        container = self._container("ephemeralContainers", spec)
        if container.process is None and time.monotonic() >= container.due:
            target = self.containers.get(spec.get("targetContainerName", ""))
            self._start(pod, container, target.identifier if target else None)

    def _after_exit(self, container: Container) -> None:
        container.due = time.monotonic() + backoff_s(container.restarts)
        self._probers.pop(container.name, None)

    def _probe(self, pod: Json, container: Container) -> None:
        prober = self._probers.get(container.name)
        if prober is None or not container.is_running:
            return
        said = prober.step()
        if said is not None:
            kind, text = said
            title = kind.removesuffix("Probe").capitalize()
            self._tell(pod, "Unhealthy", f"{title} probe failed: {text}", "Warning")
        failed = prober.must_restart()
        if failed is not None:
            title = failed.removesuffix("Probe")
            words = f"Container {container.name} failed {title} probe, will be restarted"
            self._tell(pod, "Killing", words, "Normal")
            self._end_container(container, pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _end_container(self, container: Container, grace: float) -> None:
        ends = time.monotonic() + grace
        self._stop_hook(container, grace)
        self.runc.signal(container.identifier, "TERM")
        assert container.process is not None
        while container.is_running and time.monotonic() < ends:
            time.sleep(0.05)
            pod = self._pod()
            if pod is None:
                break
            ends = min(ends, time.monotonic() + _grace_left(pod, grace))
        if container.is_running:
            self.runc.signal(container.identifier, "KILL")
            container.process.wait(60)

    def _stop_hook(self, container: Container, grace: float) -> None:
        """Run a command that is to precede the signal, within the grace period."""
        hook = (container.spec.get("lifecycle") or {}).get("preStop") or {}
        if "exec" in hook:
            with self.runc.exec(container.identifier, hook["exec"]["command"]) as done:
                try:
                    done.communicate(timeout=grace)
                except subprocess.TimeoutExpired:
                    done.kill()

    def _terminate(self, grace: float) -> None:
        """End the main containers together, then the sidecars."""
        for wanted in (False, True):
            group = [c for c in self.containers.values() if c.is_sidecar is wanted]
            threads = [
                threading.Thread(target=self._end_container, args=(c, grace), daemon=True)
                for c in group
                if c.is_running
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for container in group:
                container.poll()

    def _finish(self, pod: Json) -> None:
        main = [self.containers.get(c["name"]) for c in pod["spec"]["containers"]]
        init = [c for c in self.containers.values() if c.kind == "initContainers"]
        never = pod["spec"].get("restartPolicy") == "Never"
        broken = [c for c in init if not c.is_sidecar and c.exit_code not in (None, 0)]
        if never and broken:
            self._terminate(pod["spec"].get("terminationGracePeriodSeconds", 30))
            self.end = {"phase": "Failed"}
            return
        codes = [c.exit_code if c is not None else None for c in main]
        if any(code is None for code in codes):
            return
        if any(self._restarts(pod, c, c.exit_code or 0) for c in main if c is not None):
            for container in main:
                assert container is not None
                if time.monotonic() < container.due and container.exit_code is not None:
                    container.last_state = container.state
            return
        self._terminate(pod["spec"].get("terminationGracePeriodSeconds", 30))
        self.end = {"phase": "Succeeded" if all(c == 0 for c in codes) else "Failed"}

    def _address(self) -> Json:
        return {"podIP": self.address, "hostIP": "127.0.0.1"}

    def _publish(self, pod: Json) -> None:
        entries: dict[str, list[Json]] = {}
        fields = {
            "containers": "containerStatuses",
            "initContainers": "initContainerStatuses",
            "ephemeralContainers": "ephemeralContainerStatuses",
        }
        for kind, field in fields.items():
            for spec in pod["spec"].get(kind) or []:
                container = self._container(kind, spec)
                entries.setdefault(field, []).append(container.status(kind == "containers"))
        ready = all(e["ready"] for e in entries["containerStatuses"]) and not self.end
        waiting = [s["name"] for s in entries["containerStatuses"] if not s["ready"]]
        begun = any(c.process for c in self.containers.values() if c.kind == "containers")
        phase = self.end.get("phase") or ("Running" if begun else "Pending")

        def change(now: Json) -> None:
            status = {k: v for k, v in (now.get("status") or {}).items() if k in _KEPT}
            status |= {"phase": phase, **self.end, **self._address()}
            status |= {"podIPs": [{"ip": self.address}], "startTime": self.started_at}
            conditions = (now.get("status") or {}).get("conditions") or []
            gates = [g["conditionType"] for g in pod["spec"].get("readinessGates") or []]
            status["conditions"] = _conditions(conditions, begun, ready, waiting, gates)
            status.update(entries)
            now["status"] = status

        objects.amend(self.store, objects.PODS, pod, change)

    def _tell(self, pod: Json, reason: str, message: str, kind: str) -> None:
        objects.event(self.store, pod, reason, message, kind=kind, component="kubelet")

    def _remove(self, pod: Json) -> None:
        with self.store.lock:
            now = self._pod()
            if now is not None and not now["metadata"].get("finalizers"):
                self.store.remove(objects.PODS, self.namespace, self.name)

    def _clean(self) -> None:
        for container in self.containers.values():
            if container.identifier:
                self.runc.remove(container.identifier)
            if container.process is not None:
                # runc itself outlives the container that it has removed, by a moment.
                container.process.wait(60)
        if self.sandbox is not None:
            self.sandbox.close()


_KEPT = ("qosClass",)


def _grace_left(pod: Json, grace: float) -> float:
    """A later delete with less grace shortens a running termination."""
    return float(pod["metadata"].get("deletionGracePeriodSeconds", grace))


def _conditions(
    before: list[Json], begun: bool, ready: bool, waiting: list[str], gates: list[str]
) -> list[Json]:
    found = [c for c in before if c["type"] in ("PodScheduled", *gates)]
    told = {c["type"]: c["status"] for c in found}
    shut = [f'"{gate}"' for gate in gates if told.get(gate) != "True"]
    words = f"containers with unready status: [{' '.join(waiting)}]"
    gated = f"corresponding condition of pod readiness gate {', '.join(shut)} does not exist."
    by_gate = ready and bool(shut)
    wanted = [
        ("PodReadyToStartContainers", True, "", ""),
        ("Initialized", begun, "ContainersNotInitialized", words),
        (
            "Ready",
            ready and not shut,
            "ReadinessGatesNotReady" if by_gate else "ContainersNotReady",
            gated if by_gate else words,
        ),
        ("ContainersReady", ready, "ContainersNotReady", words),
    ]
    for kind, holds, reason, message in wanted:
        status = "True" if holds else "False"
        known = next((c for c in before if c["type"] == kind), None)
        moved = known["lastTransitionTime"] if known and known["status"] == status else timestamp()
        entry: Json = {"type": kind, "status": status, "lastTransitionTime": moved}
        if not holds:
            entry |= {"reason": reason, "message": message}
        found.append(entry)
    return found
