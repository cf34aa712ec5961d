"""A headless Chromium, driven over its debugging pipe: no driver, no port, no network."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

TIMEOUT_S = 20.0
_LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execvp(sys.argv[3], sys.argv[3:])"
)


def find() -> str | None:
    """The browser's path, or ``None``. ``SOLSCOPE_CHROMIUM`` wins."""
    chosen = os.environ.get("SOLSCOPE_CHROMIUM")
    if chosen:
        return chosen
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page with its network cut off; collects what the console says and what is requested."""

    def __init__(self, path: str, profile: Path, *, width: int = 1280, height: int = 900) -> None:
        into, self._write = os.pipe()
        self._read, out = os.pipe()
        # The browser speaks on descriptors 3 and 4; moved out of their way first.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (into, out)]
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _LAUNCH, *map(str, high)),
                *(path, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--no-first-run", "--disable-background-networking"),
                *("--disable-component-update", f"--user-data-dir={profile}"),
                *(f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank"),
            ],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (into, out, *high):
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser, whatever state it is in."""
        os.close(self._write)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )

    def open(self, page: Path) -> None:
        """Load a file and wait until its charts are drawn."""
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("document.documentElement?.dataset.drawn === 'yes'")

    def wait_for(self, expression: str) -> None:
        """Poll until an expression is true; the console's words are in the error."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            if self.value(expression) is True:
                return
            time.sleep(0.05)
        raise TimeoutError(f"{expression} never held; the console said {self.complaints}")

    def value(self, expression: str) -> Any:
        """What an expression gives in the page, as JSON."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press and release one key."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text
            )

    def move(self, x: float, y: float) -> None:
        """Point at a place of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command; events that come before its answer are noted."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], TIMEOUT_S)
            part = os.read(self._read, 1 << 16) if ready else b""
            if not part:
                raise TimeoutError("the browser said nothing more")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}:
            self.complaints.append(json.dumps(params["args"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
