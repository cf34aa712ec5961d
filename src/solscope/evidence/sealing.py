"""Seal a bundle: digest every file, write the manifest, take the write permissions away."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from solscope.errors import CaptureError, UsageError
from solscope.evidence import bundle, files
from solscope.model.evidence import (
    MANIFEST_SCHEMA,
    Artifact,
    BundleChange,
    BundleManifest,
    ChangeKind,
)

_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def seal(folder: Path, sealed_at: datetime) -> BundleManifest:
    """Write ``manifest.json`` and make everything read-only. It cannot be undone.

    Sealing a sealed bundle that is unchanged only finishes what a crash left undone. Raises
    UsageError for a bundle that changed since, holds links, or holds a command that never ended.
    """
    bundle.must_exist(folder)
    with files.locked(folder):
        manifest = read_manifest(folder)
        if manifest is None:
            _remove_parts(folder)
            _must_be_sealable(folder)
            manifest = BundleManifest(
                experiment=bundle.experiment_of(folder),
                sealed_at=sealed_at,
                artifacts=tuple(files.artifact(folder, path) for path in files.entries(folder)),
            )
            text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
            files.write(folder / bundle.MANIFEST, text + b"\n", is_new=True)
        elif changes := list(_changes(folder, manifest)):
            raise UsageError(
                f"sealed before, and {len(changes)} files differ since",
                where=str(folder),
                hint=f"solscope bundle verify {folder}",
            )
        _make_read_only(folder)
    return manifest


def verify(folder: Path) -> tuple[BundleManifest, tuple[BundleChange, ...]]:
    """The manifest, and every file that is changed, missing or extra.

    Raises UsageError where the folder is no sealed bundle.
    """
    if not (folder / bundle.MANIFEST).exists():
        bundle.must_exist(folder)
    manifest = read_manifest(folder)
    if manifest is None:
        raise UsageError(
            "the bundle is not sealed", where=str(folder), hint=f"solscope bundle seal {folder}"
        )
    return manifest, tuple(_changes(folder, manifest))


def read_manifest(folder: Path) -> BundleManifest | None:
    """The manifest, ``None`` where there is none. Raises CaptureError where it cannot be read."""
    path = folder / bundle.MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=BundleManifest)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CaptureError(
            f"the manifest cannot be read: {error}",
            where=str(path),
            hint="the bundle proves nothing any more; go back to another copy",
        ) from error
    if manifest.schema != MANIFEST_SCHEMA:
        raise CaptureError(
            f"a manifest of kind {manifest.schema!r}",
            where=str(path),
            hint=f"this version reads {MANIFEST_SCHEMA}",
        )
    return manifest


def _changes(folder: Path, manifest: BundleManifest) -> Iterator[BundleChange]:
    present = {path.relative_to(folder).as_posix(): path for path in files.entries(folder)}
    present.pop(bundle.MANIFEST, None)
    for wanted in manifest.artifacts:
        path = present.pop(wanted.path, None)
        if path is None:
            yield BundleChange(kind=ChangeKind.MISSING, path=wanted.path, detail="not there")
            continue
        detail = _difference(folder, path, wanted)
        if detail is not None:
            yield BundleChange(kind=ChangeKind.CHANGED, path=wanted.path, detail=detail)
    for name in sorted(present):
        yield BundleChange(kind=ChangeKind.EXTRA, path=name, detail="not in the manifest")


def _difference(folder: Path, path: Path, wanted: Artifact) -> str | None:
    if path.is_symlink() or not path.is_file():
        return "no plain file any more"
    try:
        now = files.artifact(folder, path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if now.size_bytes != wanted.size_bytes:
        return f"{now.size_bytes} bytes, sealed with {wanted.size_bytes}"
    return None if now.sha256 == wanted.sha256 else "same size, other content"


def _remove_parts(folder: Path) -> None:
    for path in files.entries(folder):
        if path.name.startswith(files.PART):
            path.unlink()


def _must_be_sealable(folder: Path) -> None:
    for path in files.entries(folder):
        if path.is_symlink() or not path.is_file():
            raise UsageError(
                "a bundle holds plain files only",
                where=str(path),
                hint="replace it by what it stands for",
            )
    for path in sorted((folder / bundle.COMMANDS).glob("*.cmd")):
        if not path.with_suffix(".exit").exists():
            raise UsageError(
                "this command never ended: it has no exit code",
                where=str(path),
                hint="a crash left it; remove its files and record the step again",
            )


def _make_read_only(folder: Path) -> None:
    for base, folders, names in os.walk(folder, topdown=False):
        for name in (*names, *folders):
            _drop_write(Path(base, name))
    _drop_write(folder)


def _drop_write(path: Path) -> None:
    mode = path.stat().st_mode
    if mode & _WRITE_BITS:
        path.chmod(stat.S_IMODE(mode) & ~_WRITE_BITS)
