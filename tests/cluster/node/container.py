"""One container of a pod: started, watched, restarted, and what its status says."""

from __future__ import annotations

import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.cluster.node import environment
from tests.cluster.node.images import Images, PullError
from tests.cluster.node.runtime import CAPABILITIES, PRIVILEGED, Runc, Spec
from tests.cluster.node.sandbox import Sandbox, Volumes
from tests.cluster.server.status import Json
from tests.cluster.server.store import Store, timestamp

FIRST_BACKOFF_S, LAST_BACKOFF_S = 0.5, 5.0
PULL_RETRY_S = 2.0


class Container:
    """The container's present instance and its history."""

    def __init__(self, kind: str, spec: Json, home: Path) -> None:
        self.kind, self.spec = kind, spec
        self.name: str = spec["name"]
        self.home = home
        self.restarts = 0
        self.identifier = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.state: Json = {"waiting": {"reason": "PodInitializing"}}
        self.last_state: Json = {}
        self.is_ready = False
        self.is_started = False
        self.began = 0.0
        self.due = 0.0
        self.kill_reason: str | None = None
        self._stamps: dict[str, list[str]] = {}
        self._stamping = threading.Lock()

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that stays."""
        return self.kind == "initContainers" and self.spec.get("restartPolicy") == "Always"

    @property
    def exit_code(self) -> int | None:
        """Of the present instance, once it has ended."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    def log(self, *, previous: bool = False) -> Path:
        """The file of an instance's output."""
        return self.home / f"{self.name}.{self.restarts - (1 if previous else 0)}.log"

    def stamped(self, path: Path, since: str) -> list[bytes]:
        """The lines of a log with their times, from the second ``since`` on.

        A line's time is when it was first asked for: nobody looked at it earlier.
        """
        with self._stamping:
            lines = [line + b"\n" for line in path.read_bytes().split(b"\n")[:-1]]
            stamps = self._stamps.setdefault(str(path), [])
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
            stamps += [now] * (len(lines) - len(stamps))
            pairs = list(zip(stamps, lines, strict=True))
        return [f"{stamp} ".encode() + line for stamp, line in pairs if stamp[:19] >= since[:19]]

    def wait_with(self, reason: str, message: str = "") -> None:
        """Say why it does not run."""
        waiting: Json = {"reason": reason}
        if message:
            waiting["message"] = message
        self.state = {"waiting": waiting}

    def poll(self) -> bool:
        """Notice the end of the process; true when it has just ended."""
        if self.process is None or self.process.poll() is None or "running" not in self.state:
            return False
        code = self.process.returncode
        code = 128 - code if code < 0 else code
        reason = self.kill_reason or ("Completed" if code == 0 else "Error")
        self.kill_reason = None
        ended: Json = {
            "exitCode": code,
            "reason": reason,
            "startedAt": self.state["running"]["startedAt"],
            "finishedAt": timestamp(),
            "containerID": f"runc://{self.identifier}",
        }
        self.state = {"terminated": ended}
        self.is_ready = self.is_started = False
        return True

    def status(self, pod_ready_probe: bool) -> Json:
        """The entry in the pod's status."""
        entry: Json = {
            "name": self.name,
            "state": self.state,
            "lastState": self.last_state,
            "ready": self.is_ready if pod_ready_probe else self.is_running,
            "restartCount": self.restarts,
            "image": self.spec["image"],
            "imageID": self.spec["image"],
        }
        if self.identifier:
            entry["containerID"] = f"runc://{self.identifier}"
        if self.kind != "ephemeralContainers":
            entry["started"] = self.is_started
        return entry


class Starter:
    """Starts containers of one pod."""

    def __init__(
        self, store: Store, runc: Runc, images: Images, sandbox: Sandbox, volumes: Volumes
    ) -> None:
        self._store, self._runc, self._images = store, runc, images
        self._sandbox, self._volumes = sandbox, volumes

    def start(self, pod: Json, container: Container, target: str | None = None) -> str | None:
        """Start an instance; gives the reason where that fails, and leaves it waiting."""
        spec = container.spec
        try:
            image = self._images.get(spec["image"])
            env = environment.variables(self._store, pod, spec, image)
            arguments = environment.command_line(spec, image, env)
            binds = self._binds(pod, spec)
        except PullError as error:
            container.due = time.monotonic() + PULL_RETRY_S
            backing = "waiting" in container.state and container.state["waiting"]["reason"] in (
                "ErrImagePull",
                "ImagePullBackOff",
            )
            container.wait_with("ImagePullBackOff" if backing else "ErrImagePull", str(error))
            return "Failed"
        except (environment.ConfigError, LookupError) as error:
            container.due = time.monotonic() + PULL_RETRY_S
            container.wait_with("CreateContainerConfigError", str(error))
            return "Failed"
        user = _user(pod, spec)
        if user is None:
            words = "container has runAsNonRoot and image will run as root"
            container.due = time.monotonic() + PULL_RETRY_S
            container.wait_with("CreateContainerConfigError", words)
            return "Failed"
        shares = bool(pod["spec"].get("shareProcessNamespace"))
        namespaces = self._sandbox.namespaces(shares_pid=shares)
        if target is not None:
            pid = self._runc.pid(target)
            if pid is not None:
                namespaces["pid"] = f"/proc/{pid}/ns/pid"
        uid = pod["metadata"]["uid"]
        container.identifier = f"{uid[:13]}-{container.name}-{container.restarts}"
        context = spec.get("securityContext") or {}
        runc_spec = Spec(
            identifier=container.identifier,
            arguments=arguments,
            env=env,
            hostname=pod["metadata"]["name"],
            namespaces=namespaces,
            binds=binds,
            cwd=spec.get("workingDir") or "/",
            uid=user[0],
            gid=user[1],
            is_read_only=bool(context.get("readOnlyRootFilesystem")),
            capabilities=_capabilities(context),
            no_new_privileges=context.get("allowPrivilegeEscalation") is False,
            layer=image.tree,
        )
        container.process = self._runc.start(runc_spec, container.log())
        container.began = time.monotonic()
        container.state = {"running": {"startedAt": timestamp()}}
        container.is_started = "startupProbe" not in spec
        container.is_ready = "readinessProbe" not in spec and container.is_started
        return None

    def _binds(self, pod: Json, spec: Json) -> list[tuple[str, str, bool]]:
        volumes = {v["name"]: v for v in pod["spec"].get("volumes") or []}
        found = []
        for mount in spec.get("volumeMounts") or []:
            volume = volumes[mount["name"]]
            path = self._volumes.path(pod, volume)
            if mount.get("subPath"):
                path = str(Path(path) / mount["subPath"])
                Path(path).mkdir(parents=True, exist_ok=True)
            read_only = bool(mount.get("readOnly")) or "image" in volume
            found.append((path, mount["mountPath"], read_only))
        return found


def _user(pod: Json, spec: Json) -> tuple[int, int] | None:
    merged = {
        **(pod["spec"].get("securityContext") or {}),
        **(spec.get("securityContext") or {}),
    }
    uid = int(merged.get("runAsUser", 0))
    if merged.get("runAsNonRoot") and uid == 0:
        return None
    return uid, int(merged.get("runAsGroup", 0))


def _capabilities(context: Json) -> tuple[str, ...]:
    if context.get("privileged"):
        return PRIVILEGED
    stated: dict[str, Any] = context.get("capabilities") or {}
    dropped = {name.removeprefix("CAP_") for name in stated.get("drop") or []}
    kept = () if "ALL" in dropped else tuple(c for c in CAPABILITIES if c not in dropped)
    added = tuple(c.removeprefix("CAP_") for c in stated.get("add") or [])
    return tuple(dict.fromkeys((*kept, *added)))


def backoff_s(restarts: int) -> float:
    """How long a crashed container waits: short, so that tests need not."""
    return float(min(LAST_BACKOFF_S, FIRST_BACKOFF_S * 2**restarts))
