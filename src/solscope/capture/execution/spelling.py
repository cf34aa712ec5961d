"""The commands that show what a step does, with context and namespace always named."""

from __future__ import annotations

from solscope.capture.execution import pods
from solscope.capture.execution.server import SIDECAR
from solscope.model.capture import CaptureSettings

Words = tuple[str, ...]


class Speller:
    """Spells kubectl commands for one run. A stage after the first has a manifest of its own."""

    def __init__(self, settings: CaptureSettings) -> None:
        self._settings = settings
        named = ("--context", settings.context) if settings.context else ()
        self._start = ("kubectl", *named, "--namespace", settings.namespace)

    def kubectl(self, *words: str) -> Words:
        """A command of its own."""
        return (*self._start, *words)

    def target(self, *words: str) -> Words:
        """The target, read."""
        return self.kubectl("get", self._settings.workload, *words)

    def create(self, manifest: str, *words: str) -> Words:
        """The objects of a manifest, created."""
        return self.kubectl("create", "-f", manifest, "--validate=strict", *words)

    def pods(self, *words: str) -> Words:
        """The run's pods."""
        return self.labelled("get", "pods", *words)

    def labelled(self, verb: str, kinds: str, *words: str) -> Words:
        """What the run has made, by its labels: the experiment's alone may be on more."""
        selector = f"experiment={self._settings.experiment},{pods.MARK}"
        return self.kubectl(verb, kinds, "-l", selector, *words)

    def inside(self, *words: str) -> Words:
        """A command in the server's container."""
        return self._exec(self._settings.container, *words)

    def beside(self, *words: str) -> Words:
        """A command in the sidecar that holds the results."""
        return self._exec(SIDECAR, *words)

    def _exec(self, container: str, *words: str) -> Words:
        where = f"{self._settings.sister_kind.lower()}/{self._settings.sister}"
        return self.kubectl("exec", where, "-c", container, "--", *words)

    def ask(self, method: str, path: str) -> Words:
        """A request to the server, from where it runs."""
        url = f"http://127.0.0.1:{self._settings.port}{path}"
        return self.inside("curl", "-X", method, url)
