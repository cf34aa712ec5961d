"""An evidence bundle by hand: begin one, record steps into it, seal it, verify it."""

from __future__ import annotations

import getpass
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from solscope.cluster import secrecy
from solscope.errors import UsageError
from solscope.evidence import bundle, running, sealing
from solscope.evidence.redaction import Redactor
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.evidence import BundleSource


@dataclass(frozen=True, slots=True)
class BundleRequest:
    """Keep evidence that a reviewer can check: init, record, seal or verify a bundle.

    init DIR makes an empty bundle. record DIR STEP -- COMMAND... runs the command and keeps
    its command line, both outputs and its exit code as commands/NN-STEP.*; record DIR --add
    FILE copies a file in. Secrets are masked in commands, outputs and
    added text files up to 64 MiB; other files are copied byte for byte.
    seal DIR writes manifest.json, the sha256 of every file, and makes the bundle read-only.
    verify DIR finds every changed, missing or extra file (exit code 1).
    """

    action: Literal["init", "record", "seal", "verify"] = option(
        "init, record, seal or verify.", positional=True
    )
    folder: str = option("The bundle: FAMILY/RUN-ID under experiments/artifacts.", positional=True)
    words: tuple[str, ...] = option(
        "record: a name for the step, then -- and the command.", positional=True, default=()
    )
    add: tuple[str, ...] = option("record: copy this file into the bundle.", default=())
    into: str = option("record: folder of the bundle for --add.", default=bundle.PROFILES)
    experiment: str | None = option("init: experiment id; default: DIR's name.", default=None)
    family: str | None = option("init: kernel family; default: DIR's parent.", default=None)
    intent: str | None = option("init: what the run is for.", default=None)
    who: str | None = option("init: who made it; default: the user's name.", default=None)
    where: str | None = option("init: cluster, namespace, node.", default=None)
    commit: str | None = option(
        "init: commit of what was measured; default: the working directory's.", default=None
    )
    manifest_sha256: str | None = option(
        "verify: the manifest must have this sha256, as seal printed it.", default=None
    )


def run(request: BundleRequest, world: World) -> Outcome:
    """The verb. Exit code 1: the recorded command failed, or the bundle is not as sealed."""
    folder = Path(request.folder)
    redactor = _redactor()
    match request.action:
        case "init":
            return _init(request, folder, redactor, world)
        case "record":
            opened = bundle.open_bundle(folder, redactor, world.now)
            return _add(request, opened) if request.add else _record(request, opened, world)
        case "seal":
            return _seal(folder, world)
        case _:
            return _verify(request, folder)


def _redactor() -> Redactor:
    """Masks secrets by name and shape, and those of this process's own environment by value."""
    redactor = Redactor(secrecy.masked, secrecy.is_secret_name)
    for name, value in os.environ.items():
        if secrecy.is_secret(name, value):
            redactor.learn(value)
    return redactor


def _init(request: BundleRequest, folder: Path, redactor: Redactor, world: World) -> Outcome:
    absolute = folder.absolute()
    source = BundleSource(
        experiment=request.experiment or absolute.name,
        family=request.family or absolute.parent.name,
        intent=request.intent,
        who=request.who or user(),
        where=request.where,
        commit=request.commit or commit_of(Path.cwd()),
    )
    made = bundle.init(folder, source, redactor, world.now)
    text = f"{made.folder}: open, experiment {source.experiment}"
    return Outcome(value=made, text=text, files=(str(folder / bundle.SOURCE),))


def _record(request: BundleRequest, opened: bundle.Bundle, world: World) -> Outcome:
    step, *argv = request.words or ("",)
    if not step or not argv:
        raise UsageError(
            "nothing to record",
            hint="solscope bundle record DIR STEP -- COMMAND..., or record DIR --add FILE",
        )
    bundle.check_step(step)
    begun = world.now()
    finished = running.run(argv)
    name, receipt = opened.record(step, argv, finished, begun)
    if finished.is_interrupted:
        raise KeyboardInterrupt
    sizes = f"stdout {len(finished.stdout)} bytes, stderr {len(finished.stderr)} bytes"
    text = f"{name}: exit {finished.exit_code}, {sizes}\n  {receipt.command}"
    written = tuple(str(opened.folder / artifact.path) for artifact in receipt.artifacts)
    return Outcome(
        value=receipt, text=text, exit_code=0 if finished.exit_code == 0 else 1, files=written
    )


def _add(request: BundleRequest, opened: bundle.Bundle) -> Outcome:
    if request.words:
        raise UsageError("--add takes no command", hint="record the command in a call of its own")
    kept = [
        opened.add(Path(source), f"{request.into}/{Path(source).name}") for source in request.add
    ]
    lines = [
        f"{a.path}: {a.size_bytes} bytes, sha256 {a.sha256}"
        + (f" ({receipt.message})" if receipt.message else "")
        for receipt in kept
        for a in receipt.artifacts
    ]
    paths = tuple(str(opened.folder / a.path) for receipt in kept for a in receipt.artifacts)
    return Outcome(value=tuple(kept), text="\n".join(lines), files=paths)


def _seal(folder: Path, world: World) -> Outcome:
    manifest = sealing.seal(folder, world.now())
    count, digest = len(manifest.artifacts), _digest(folder)
    text = f"{folder}: sealed, {count} files\n  manifest sha256 {digest}"
    return Outcome(value=manifest, text=text, files=(str(folder / bundle.MANIFEST),))


def _verify(request: BundleRequest, folder: Path) -> Outcome:
    manifest, changes = sealing.verify(folder)
    digest = _digest(folder)
    lines = [f"{change.kind:<8} {change.path} ({change.detail})" for change in changes]
    wanted = (request.manifest_sha256 or digest).lower()
    if wanted != digest:
        lines.append(f"changed  {bundle.MANIFEST} (sha256 {digest}, wanted {wanted})")
    if lines:
        head = f"{folder}: NOT as sealed: {len(lines)} of {len(manifest.artifacts) + 1} files"
        return Outcome(value=changes, text="\n".join([head, *lines]), exit_code=1)
    when = manifest.sealed_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = (
        f"{folder}: as sealed {when}, {len(manifest.artifacts)} files\n  manifest sha256 {digest}"
    )
    return Outcome(value=changes, text=text)


def _digest(folder: Path) -> str:
    from solscope.evidence import files

    return files.artifact(folder, folder / bundle.MANIFEST).sha256


def user() -> str | None:
    """The name of who runs this process; ``None`` where the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def commit_of(folder: Path) -> str | None:
    """The commit checked out around a folder, by git's own files; ``None`` if there is none."""
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        if git.is_file():
            found = re.match(r"gitdir: (.+)", git.read_text())
            git = (parent / found[1].strip()).resolve() if found else git
        if (git / "HEAD").is_file():
            return _resolved(git)
    return None


def _resolved(git: Path) -> str | None:
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head
    name, shared = head.removeprefix("ref: "), git / "commondir"
    common = (git / shared.read_text().strip()).resolve() if shared.is_file() else git
    for place in (git / name, common / name):
        if place.is_file():
            return place.read_text().strip()
    packed = common / "packed-refs"
    if packed.is_file():
        for line in packed.read_text().splitlines():
            if line.endswith(f" {name}"):
                return line.split()[0]
    return None
