"""Real requests against the sister: until throughput is steady, and while the window is open."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from solscope.capture.execution import scripts
from solscope.capture.execution.server import Sister
from solscope.cluster.port import Unreachable
from solscope.errors import CaptureError, ClusterError

POLL_S = 0.5
_START_LIMIT_S = 20.0
STEADY_BATCHES = 4
STEADY_SPREAD = 0.10
MOST_FAILED_BATCHES = 3
_KEPT_SPREAD = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One round of concurrent requests. ``error`` is the first one's, if any failed."""

    seconds: float
    tokens: int
    requests: int
    failed: int
    error: str | None = None

    @property
    def tokens_per_s(self) -> float:
        """Generated tokens of all requests over the round's time."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A load that was started in the sister, by the name of its folder there."""

    sister: Sister
    name: str

    @property
    def folder(self) -> str:
        """Where it notes its batches."""
        return f"{scripts.NOTES}/{self.name}"

    def start(self, seconds: float, request_limit_s: float) -> None:
        """Start it for ``seconds`` at most. Raises CaptureError where it cannot run."""
        told = {
            **asdict(self.sister.settings.traffic),
            "base": self.sister.base,
            "folder": self.folder,
            "seconds": seconds,
            "limit": request_limit_s,
        }
        words = ("sh", "-c", scripts.START, "sh", self.folder, scripts.LOAD, json.dumps(told))
        # A load that runs already is ended and begun anew.
        done = self.sister.exec_whole(words, timeout_s=_START_LIMIT_S)
        if done.exit_code != 0:
            self.sister.must_not_end()
            raise CaptureError(
                f"the load did not start: {done.stderr.strip()[-300:]}",
                where=f"pod/{self.sister.pod}",
                hint="the server's image needs sh and python3",
            )

    def batches(self) -> tuple[tuple[Batch, ...], bool]:
        """The rounds so far, and whether it still runs. Raises CaptureError where it broke."""
        done = self.sister.exec(("sh", "-c", scripts.READ_LOAD, "sh", self.folder))
        found: list[Batch] = []
        runs, is_over = True, False
        # A stream that was cut ends inside a line; the next look brings it whole.
        *lines, _ = done.stdout.decode("utf-8", "replace").split("\n")
        for line in lines:
            told = json.loads(line)
            if told.get("ended"):
                runs, is_over = False, True
            elif told.get("dead"):
                runs = False
            elif "seconds" in told:
                found.append(Batch(**told))
            elif told.get("error"):
                raise CaptureError(
                    f"no request could be sent: {told['error']}",
                    where=f"pod/{self.sister.pod}",
                    hint="does the server answer /v1/models? its log is in the bundle",
                )
        if not runs and not is_over:
            raise self._died(done.stderr)
        return tuple(found), runs

    def _died(self, said: str) -> CaptureError:
        last = said.strip().splitlines()[-1:] or ["it wrote nothing"]
        return CaptureError(
            f"what sends the requests has ended: {last[0][:300]}",
            where=f"pod/{self.sister.pod}",
            hint="killed: raise the server's memory limit, or send fewer requests (--concurrency)",
        )

    def stop(self) -> None:
        """Let it end after its present round. Never raises for a server that is gone."""
        with contextlib.suppress(ClusterError, CaptureError):
            self.sister.exec(("sh", "-c", 'touch "$1/stop"', "sh", self.folder))


def is_steady(batches: Sequence[Batch]) -> bool:
    """Whether the last rounds went alike: within a tenth of their mean, none failed.

    >>> four = [Batch(seconds=1, tokens=n, requests=1, failed=0) for n in (100, 96, 104, 100)]
    >>> is_steady(four), is_steady(four[:3])
    (True, False)
    """
    last = batches[-STEADY_BATCHES:]
    if len(last) < STEADY_BATCHES or any(batch.failed for batch in last):
        return False
    mean = sum(batch.tokens_per_s for batch in last) / len(last)
    return mean > 0 and all(
        abs(batch.tokens_per_s - mean) <= STEADY_SPREAD * mean for batch in last
    )


def is_plateau(batches: Sequence[Batch]) -> bool:
    """Whether throughput has stopped rising, though it is noisy: two spans of rounds alike."""
    span = 2 * STEADY_BATCHES
    if len(batches) < 2 * span or any(batch.failed for batch in batches[-span:]):
        return False
    before = sum(b.tokens_per_s for b in batches[-2 * span : -span]) / span
    after = sum(b.tokens_per_s for b in batches[-span:]) / span
    return before > 0 and abs(after - before) <= _KEPT_SPREAD * before


def warm_up(sister: Sister, limit_s: float, tick: Callable[[str], None]) -> tuple[Batch, ...]:
    """Send requests until throughput is steady; every round.

    Raises CaptureError where all requests fail, the server ends, or ``limit_s`` has passed.
    """
    load = Load(sister=sister, name="warm-up")
    load.start(limit_s, limit_s)
    ends = time.monotonic() + limit_s
    batches: tuple[Batch, ...] = ()
    while time.monotonic() < ends:
        time.sleep(POLL_S)
        sister.must_run()
        try:
            batches, runs = load.batches()
        except Unreachable:
            continue
        check(batches, sister)
        if is_steady(batches) or is_plateau(batches):
            load.stop()
            return batches
        if not runs:
            break
        if batches:
            tick(f"warm-up: {len(batches)} rounds, {batches[-1].tokens_per_s:.0f} tokens/s")
    sister.must_run()
    load.stop()
    rates = ", ".join(f"{batch.tokens_per_s:.0f}" for batch in batches[-STEADY_BATCHES:])
    raise CaptureError(
        f"throughput not steady within {limit_s:g} s: last rounds {rates or 'none'} tokens/s",
        where=f"pod/{sister.pod}",
        hint="give a longer --warm-up-limit, or lighter requests (--isl, --osl, --concurrency)",
    )


def check(batches: Sequence[Batch], sister: Sister) -> None:
    """Raise CaptureError where no request gets through any more."""
    last = batches[-MOST_FAILED_BATCHES:]
    if len(last) == MOST_FAILED_BATCHES and all(b.failed == b.requests for b in last):
        raise CaptureError(
            f"every request fails: {last[-1].error}",
            where=f"pod/{sister.pod}",
            hint="shorter requests (--isl, --osl) if the model's context is smaller; else its log",
        )
