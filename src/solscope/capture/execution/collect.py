"""Reports brought home whole: fetched by offset, gone on with after a cut, verified, renamed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from solscope.capture.execution import scripts
from solscope.capture.execution.server import SIDECAR, Sister
from solscope.errors import CaptureError, ClusterError
from solscope.evidence.bundle import PROFILES, Bundle
from solscope.evidence.files import PART
from solscope.model.capture import CollectedFile
from solscope.model.evidence import Artifact

CHUNK_BYTES = 4 << 20
MOST_CUTS = 8
"""So many answers without a new byte, one after the other, and the transfer is given up."""
_INDEX_LIMIT_S = 600.0
_CHUNK_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """One file in the sister, as its own ``sha256sum`` and ``wc`` told."""

    name: str
    sha256: str
    size_bytes: int


def index(sister: Sister) -> tuple[Remote, ...]:
    """The reports that lie in the sister. Raises CaptureError where it cannot be told."""
    command = ("sh", "-c", scripts.INDEX, "sh", scripts.RESULTS)
    done = sister.exec_whole(command, container=SIDECAR, timeout_s=_INDEX_LIMIT_S)
    if done.exit_code != 0:
        raise CaptureError(
            f"the results cannot be listed: {done.stderr.strip()[-300:]}",
            where=f"pod/{sister.pod}",
            hint="the sidecar needs sh, wc and sha256sum",
        )
    found = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        sha256, size, name = line.split(" ", 2)
        found.append(Remote(name=name, sha256=sha256, size_bytes=int(size)))
    return tuple(found)


def fetch(
    sister: Sister, remote: Remote, bundle: Bundle, tick: Callable[[str], None]
) -> CollectedFile:
    """Fetch one file into the bundle's profiles; one that is there already is not fetched again.

    Raises CaptureError where it cannot be had whole, or where there is no room for it.
    """
    inside = f"{PROFILES}/{remote.name}"
    goal = bundle.folder / inside
    artifact = Artifact(path=inside, sha256=remote.sha256, size_bytes=remote.size_bytes)
    if goal.exists() and _digest(goal) == remote.sha256:
        bundle.note_source("ncu")  # a crash may have come between the copy and this
        return CollectedFile(name=remote.name, artifact=artifact)
    part = bundle.folder / PROFILES / f"{PART}{remote.name}"
    try:
        _download(sister, remote, part, tick)
        if _digest(part) != remote.sha256:
            part.unlink()
            _download(sister, remote, part, tick)
            if _digest(part) != remote.sha256:
                raise CaptureError(
                    "the copy differs from what lies in the sister, twice",
                    where=remote.name,
                    hint="something changes the bytes on the way, or the file still grows",
                )
        bundle.add(part, inside)
    except OSError as error:
        raise CaptureError(
            f"cannot be written: {error.strerror}",
            where=str(goal.parent),
            hint=f"{remote.size_bytes} bytes are needed twice; make room, then capture again",
        ) from error
    part.unlink()
    return CollectedFile(name=remote.name, artifact=artifact)


def _download(sister: Sister, remote: Remote, part: Path, tick: Callable[[str], None]) -> None:
    """Append to what is there already until it has the size."""
    cuts = 0
    have = part.stat().st_size if part.exists() else 0
    if have > remote.size_bytes:
        part.unlink()
        have = 0
    with part.open("ab") as file:
        while have < remote.size_bytes:
            data = _chunk(sister, remote, have)
            if not data:
                cuts += 1
                if cuts >= MOST_CUTS:
                    raise CaptureError(
                        f"the transfer stands still at {have} of {remote.size_bytes} bytes",
                        where=remote.name,
                        hint="is the pod still there, and the network?",
                    )
                time.sleep(min(0.25 * 2**cuts, 10.0))
                continue
            cuts = 0
            file.write(data)
            file.flush()
            have += len(data)
            tick(f"collect: {remote.name} {have} of {remote.size_bytes} bytes")


def _chunk(sister: Sister, remote: Remote, have: int) -> bytes:
    """The next bytes; fewer, or none, where the stream was cut."""
    count = min(CHUNK_BYTES, remote.size_bytes - have)
    path = f"{scripts.RESULTS}/{remote.name}"
    command = ("sh", "-c", scripts.CHUNK, "sh", path, str(have + 1), str(count))
    try:
        done = sister.exec(command, container=SIDECAR, timeout_s=_CHUNK_LIMIT_S)
    except ClusterError:
        return b""
    except CaptureError as error:
        raise CaptureError(
            f"the sister went before its results were home: {error.what}",
            where=f"pod/{sister.pod}",
            hint="its hold time had passed, or somebody deleted it; capture again",
        ) from error
    return done.stdout[:count]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
