"""The sister's server, spoken to from inside its container: no port-forward, no Service."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solscope.capture.execution import pods, scripts
from solscope.capture.execution.container_log import ContainerLog
from solscope.cluster.port import Cluster, ExecResult, NotFound, Unreachable
from solscope.errors import CaptureError
from solscope.model.capture import CaptureSettings

SIDECAR = "solscope-results"
POLL_S = 0.5
_MISSING = re.compile(r"executable file not found|no such file or directory", re.IGNORECASE)
_ASK_LIMIT_S = 10.0
_END_TOLD_S = 3.0
# A container that ends while a command starts in it can leave kubectl waiting.
_EXEC_LIMIT_S = 10.0
_PAUSES_S = (0.5, 2.0, 8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an endpoint said. ``status`` is ``None`` where nothing listens."""

    status: int | None
    body: str


@dataclass(slots=True, kw_only=True)
class Sister:
    """The sister as a run reaches it: cluster, settings, the name of its pod."""

    cluster: Cluster
    settings: CaptureSettings
    pod: str
    _output: ContainerLog = field(init=False)

    def __post_init__(self) -> None:
        self._output = ContainerLog(
            cluster=self.cluster,
            namespace=self.settings.namespace,
            pod=self.pod,
            container=self.settings.container,
        )

    @property
    def base(self) -> str:
        """The server's address inside the pod."""
        return f"http://127.0.0.1:{self.settings.port}"

    def exec(
        self,
        command: Sequence[str],
        *,
        container: str | None = None,
        timeout_s: float = _EXEC_LIMIT_S,
    ) -> ExecResult:
        """Run a command in the server's container, or in another one.

        Raises CaptureError where that container does not run any more.
        """
        name = container or self.settings.container
        with self._pod_there():
            done = self.cluster.exec(self.pod, name, command, timeout_s=timeout_s)
        if done.failed_to_start and not _MISSING.search(done.stderr):
            self.must_not_end()
            raise CaptureError(
                f"container {name} has ended: {done.stderr.strip()[-200:]}",
                where=f"pod/{self.pod}",
                hint="its log is in the bundle",
            )
        return done

    def exec_whole(
        self, command: Sequence[str], *, container: str | None = None, timeout_s: float
    ) -> ExecResult:
        """Run a command that may be run twice, again where its stream was cut, a few times."""
        for pause_s in _PAUSES_S:
            done = self.exec(command, container=container, timeout_s=timeout_s)
            if done.exit_code == 0:
                return done
            time.sleep(pause_s)
        return self.exec(command, container=container, timeout_s=timeout_s)

    def ask(
        self, method: str, path: str, *, body: str = "", limit_s: float = _ASK_LIMIT_S
    ) -> Answer:
        """One request to the server, ``body`` as JSON.

        Raises CaptureError where there is no Python to ask with.
        """
        command = ("python3", "-c", scripts.ASK, method, self.base + path, f"{limit_s:g}", body)
        done = self.exec(command, timeout_s=limit_s + 20)
        if done.failed_to_start or done.exit_code == 127:
            raise CaptureError(
                "the server's image has no python3 to send requests with",
                where=f"pod/{self.pod}",
                hint="choose the image's own Python environment, or an image that has one",
            )
        try:
            told: Mapping[str, Any] = json.loads(done.stdout)
        except ValueError:
            return Answer(status=None, body=done.stderr.strip()[-300:])
        return Answer(status=told.get("status"), body=str(told.get("body") or ""))

    def log(self) -> str:
        """The log of the server's container, ncu's lines among it.

        Raises ClusterError, and CaptureError where the pod is gone.
        """
        with self._pod_there():
            return self._output.text()

    @contextlib.contextmanager
    def _pod_there(self) -> Iterator[None]:
        """Say of a pod that is not found why it went, not that its name may be wrong."""
        try:
            yield
        except NotFound:
            self.must_run()
            raise

    def must_not_end(self) -> None:
        """After a command failed: raise CaptureError where the container is about to have ended.

        The node tells a container's end a second or two after it.
        """
        ends = time.monotonic() + _END_TOLD_S
        while time.monotonic() < ends:
            self.must_run()
            time.sleep(POLL_S)

    def must_run(self) -> None:
        """Raise CaptureError where the pod or the server's container has ended."""
        owner = (self.settings.sister_kind, self.settings.sister)
        pod = pods.require(self.cluster, self.settings.experiment, owner)
        ended = pods.state_of(pod, self.settings.container).get("terminated")
        trouble = pods.of_pod(pod)
        if trouble is not None and trouble.patience_s == 0:
            raise CaptureError(trouble.what, where=f"pod/{self.pod}", hint=trouble.hint)
        if ended:
            raise CaptureError(
                f"the server ended by itself (exit code {ended.get('exitCode')})",
                where=f"pod/{self.pod}",
                hint="its log is in the bundle",
            )


def wait_ready(sister: Sister, limit_s: float, tick: Callable[[str], None]) -> float:
    """Wait for the engine's own endpoint; the seconds it took.

    Raises CaptureError when the server has ended, or when ``limit_s`` has passed.
    """
    begun = time.monotonic()
    answer = Answer(status=None, body="")
    while time.monotonic() - begun < limit_s:
        sister.must_run()
        try:
            answer = sister.ask("GET", sister.settings.health)
        except Unreachable:
            time.sleep(POLL_S)
            continue
        if answer.status == 200:
            return time.monotonic() - begun
        tick(f"waiting for {sister.settings.health}: {answer.status or 'no answer yet'}")
        time.sleep(POLL_S)
    sister.must_run()
    said = f"it answered {answer.status}" if answer.status else "nothing listened"
    raise CaptureError(
        f"not ready within {limit_s:g} s: {said} on {sister.base}{sister.settings.health}",
        where=f"pod/{sister.pod}",
        hint="give a longer --ready-limit, or the right --port and --health",
    )
