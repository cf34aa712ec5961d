"""Whole files or none: atomic writes, digests, one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from solscope.errors import CaptureError, UsageError
from solscope.model.evidence import Artifact

try:
    import fcntl
except ModuleNotFoundError as _error:
    raise UsageError(
        "evidence is kept on Linux and macOS only: this system has no such file locks",
        hint="use WSL for captures, bundles and campaigns; read, analyze, compare, budget, join, "
        "plan and diagnose run here",
    ) from _error

PART = ".part-"
CHUNK_BYTES = 1 << 20
# What flock says of a folder where the file system locks only what is open for writing.
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


def write(path: Path, data: bytes, *, is_new: bool = False) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a half.

    ``is_new``: raises FileExistsError where the file is already there.
    """
    with replacing(path, is_new=is_new) as handle:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]


@contextlib.contextmanager
def replacing(path: Path, *, is_new: bool = False) -> Iterator[int]:
    """A file descriptor whose content becomes ``path`` where the block ends well.

    Raises CaptureError where the disk refuses (full, read-only), with nothing left behind.
    """
    with refusals_told(path):
        handle, name = tempfile.mkstemp(prefix=PART, dir=path.parent)
        part = Path(name)
        try:
            try:
                yield handle
                os.fchmod(handle, 0o644)
                os.fsync(handle)
            finally:
                os.close(handle)
            if is_new:
                _link_new(part, path)
            else:
                part.replace(path)
            sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def refusals_told(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write into CaptureError; FileExistsError passes."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise CaptureError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            hint="nothing half-written is left; make room or give another folder, then repeat",
        ) from error


def _link_new(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: the writers' lock still keeps others away.
        if path.exists():
            raise FileExistsError(path) from None
        part.replace(path)


def copy(source: Path, goal: Path) -> None:
    """Copy a file whole. Raises FileExistsError where the goal exists."""
    with source.open("rb") as reader, replacing(goal, is_new=True) as handle:
        while data := reader.read(CHUNK_BYTES):
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]


def artifact(folder: Path, path: Path) -> Artifact:
    """The digest and size of a file inside a folder."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as reader:
        while data := reader.read(CHUNK_BYTES):
            digest.update(data)
            size += len(data)
    relative = path.relative_to(folder).as_posix()
    return Artifact(path=relative, sha256=digest.hexdigest(), size_bytes=size)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only writer of a folder; a second one waits. The lock dies with its process."""
    handle = _lock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)


def _lock(folder: Path, how: int) -> int:
    """A descriptor that holds the folder's lock; BlockingIOError where ``how`` must not wait."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, how)
    except OSError as error:
        os.close(handle)
        if error.errno not in _NO_LOCKS:
            raise
        return _lock_here(folder, how)
    return handle


def _lock_here(folder: Path, how: int) -> int:
    """The same where folders have no locks, as on NFS: among the processes of this machine."""
    mark = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    place = Path(tempfile.gettempdir(), f"solscope-{os.getuid()}-{mark}.lock")
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, how)
    except OSError:
        os.close(handle)
        raise
    return handle


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Whether this process alone has claimed a folder until the block ends; nobody waits."""
    try:
        handle = _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        os.close(handle)


def entries(folder: Path) -> list[Path]:
    """Everything under a folder that is no folder itself, sorted; links are not followed."""
    found: list[Path] = []
    for base, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(base, name))]
        found += [Path(base, name) for name in (*names, *links)]
    return sorted(found)
