"""An evidence bundle that is open: made, recorded into. Sealing is in ``sealing.py``."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path, PurePosixPath

import yaml

from solscope.errors import UsageError
from solscope.evidence import files, receipts
from solscope.evidence.redaction import Redactor
from solscope.evidence.running import Finished
from solscope.model.evidence import Artifact, BundleSource, MeasurementContext, Receipt

MANIFEST = "manifest.json"
SOURCE = "SOURCE.md"
SOURCES = "capture_sources.json"
CONTEXT = "context.yaml"
COMMANDS = "commands"
PROFILES = "ncu-profiles"
FOLDERS = (COMMANDS, PROFILES, "findings")
LARGEST_TEXT_BYTES = 64 << 20
"""A larger file is copied unread, which its receipt says: it is a report or a trace."""

_EXPERIMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z")
_STEP = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_NUMBERED = re.compile(r"(\d+)-(.+)\.(cmd|stdout|stderr|exit)\Z")
_OBJECTS = "## Cluster objects made"
_SUMMARY = """# {experiment}

Status: DRAFT

## Findings

(none yet)

## Next lever

(none yet)
"""
_OBSERVATIONS = "# Observations\n\nMeasured values only, each with its file.\n"
_MECHANISMS = "# Mechanisms\n\nObservation -> mechanism -> confidence.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle that is not sealed, and what masks secrets in it."""

    folder: Path
    redactor: Redactor
    now: Callable[[], datetime]

    def record(
        self,
        step: str,
        argv: Sequence[str],
        finished: Finished,
        begun: datetime,
        run: str | None = None,
    ) -> tuple[str, Receipt]:
        """Write ``commands/NN-step.{cmd,stdout,stderr,exit}`` and a receipt; gives ``NN-step``.

        ``.exit`` is written last: a command without it never ended. ``run`` names the capture
        that the step belongs to. Raises UsageError for a step that is no lower-case name.
        """
        check_step(step)
        line = shlex.join(self.redactor.argv(argv))
        parts = {
            "cmd": line.encode("utf-8", "surrogateescape") + b"\n",
            "stdout": self.redactor.output(finished.stdout),
            "stderr": self.redactor.output(finished.stderr),
            "exit": b"%d\n" % finished.exit_code,
        }
        with files.locked(self.folder):
            self._must_be_open()
            name = f"{self._next_number():02d}-{step}"
            for kind, data in parts.items():
                files.write(self.folder / COMMANDS / f"{name}.{kind}", data, is_new=True)
            receipt = Receipt(
                step=name,
                begun=begun,
                ended=self.now(),
                is_ok=finished.exit_code == 0,
                command=line,
                exit_status=finished.exit_code,
                artifacts=tuple(self._artifact(f"{COMMANDS}/{name}.{kind}") for kind in parts),
                run=run,
            )
            receipts.append(self.folder, receipt)
        return name, receipt

    def drop_unfinished(self) -> None:
        """Remove what a crash left of a command whose recording it cut: no receipt names it."""
        with files.locked(self.folder):
            self._must_be_open()
            commands = self.folder / COMMANDS
            for path in sorted(commands.iterdir()):
                if _NUMBERED.match(path.name) and not path.with_suffix(".exit").exists():
                    path.unlink()

    def add(self, source: Path, inside: str) -> Receipt:
        """Copy a file into the bundle; gives its receipt.

        Binary files are copied byte for byte; in text, secrets are masked, and the receipt says
        so. ``inside`` is the path in the bundle. Raises UsageError where it leads outside, or
        where something is there already.
        """
        goal = self._inside(inside)
        begun = self.now()
        if not source.is_file():
            raise UsageError("no such file", where=str(source))
        with files.locked(self.folder):
            self._must_be_open()
            goal.parent.mkdir(parents=True, exist_ok=True)
            masked, message = self._masked(source)
            try:
                if masked is None:
                    files.copy(source, goal)
                else:
                    files.write(goal, masked, is_new=True)
            except FileExistsError:
                raise UsageError(
                    "already in the bundle",
                    where=inside,
                    hint="evidence is never overwritten; give it another name",
                ) from None
            artifact = files.artifact(self.folder, goal)
            if artifact.path.endswith((".ncu-rep", ".ncu-repz")):
                self._note_source("ncu")
            receipt = Receipt(
                step="add",
                begun=begun,
                ended=self.now(),
                is_ok=True,
                message=message,
                artifacts=(artifact,),
            )
            receipts.append(self.folder, receipt)
        return receipt

    def _masked(self, source: Path) -> tuple[bytes | None, str | None]:
        """The masked content of a text file that holds secrets, and what is to be said of it.

        No content for any other file: it is copied as it is.
        """
        with source.open("rb") as reader:
            is_text = b"\0" not in reader.read(8192)
        if not is_text:
            return None, None
        if source.stat().st_size > LARGEST_TEXT_BYTES:
            return None, f"over {LARGEST_TEXT_BYTES >> 20} MiB: not searched for secrets"
        data = source.read_bytes()
        masked = self.redactor.output(data)
        return (None, None) if masked == data else (masked, "secrets masked")

    def receipt(self, receipt: Receipt) -> None:
        """Add a receipt of a step that was no recorded command.

        Cluster objects that it names are listed in SOURCE.md, too.
        """
        with files.locked(self.folder):
            self._must_be_open()
            receipts.append(self.folder, receipt)
            if receipt.objects:
                self._list_objects()

    def write(self, inside: str, text: str) -> None:
        """Write or replace a text file (summary, findings, context), secrets masked."""
        goal = self._inside(inside)
        with files.locked(self.folder):
            self._must_be_open()
            goal.parent.mkdir(parents=True, exist_ok=True)
            files.write(goal, self.redactor.text(text).encode())

    def write_document(self, inside: str, text: bytes | str) -> None:
        """Write or replace a JSON file, secrets masked in its texts: it can be read again."""
        document = self.redactor.document(json.loads(text))
        goal = self._inside(inside)
        with files.locked(self.folder):
            self._must_be_open()
            goal.parent.mkdir(parents=True, exist_ok=True)
            files.write(goal, json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n")

    def fill(self, inside: str, text: str) -> None:
        """Write a page that was made empty; under what somebody has written there meanwhile."""
        goal = self._inside(inside)
        present = goal.read_text() if goal.exists() else ""
        is_empty = present in ("", _SUMMARY.format(experiment=experiment_of(self.folder)))
        is_empty = is_empty or present in (_OBSERVATIONS, _MECHANISMS)
        self.write(inside, text if is_empty else f"{present.rstrip()}\n\n{text}")

    def _list_objects(self) -> None:
        every = (name for receipt in receipts.read(self.folder) for name in receipt.objects)
        listed = "\n".join(f"- {name}" for name in dict.fromkeys(every))
        path = self.folder / SOURCE
        head = path.read_text().partition(f"\n{_OBJECTS}\n")[0]
        files.write(path, f"{head}\n{_OBJECTS}\n\n{listed}\n".encode())

    def _inside(self, inside: str) -> Path:
        path = PurePosixPath(inside)
        reserved = path.as_posix() in (MANIFEST, receipts.NAME) or path.parts[:1] == (COMMANDS,)
        if path.is_absolute() or ".." in path.parts or not path.parts or reserved:
            raise UsageError(
                "no place for a file in a bundle",
                where=inside,
                hint=f"a relative path, such as {PROFILES}/NAME.ncu-rep",
            )
        return self.folder / path

    def _must_be_open(self) -> None:
        if (self.folder / MANIFEST).exists():
            raise UsageError(
                "the bundle is sealed",
                where=str(self.folder),
                hint="a sealed bundle never changes; begin another with `solscope bundle init`",
            )

    def _artifact(self, inside: str) -> Artifact:
        return files.artifact(self.folder, self.folder / inside)

    def _next_number(self) -> int:
        names = (_NUMBERED.match(path.name) for path in (self.folder / COMMANDS).iterdir())
        return max((int(found[1]) for found in names if found), default=0) + 1

    def note_source(self, source: str) -> None:
        """Name a source of evidence in ``capture_sources.json``, once."""
        with files.locked(self.folder):
            self._must_be_open()
            self._note_source(source)

    def _note_source(self, source: str) -> None:
        path = self.folder / SOURCES
        body = json.loads(path.read_bytes()) if path.exists() else {}
        known = body.get("captured_sources") or []
        if source not in known:
            body["captured_sources"] = [*known, source]
            files.write(path, json.dumps(body, indent=2).encode() + b"\n")


def check_step(step: str) -> None:
    """Raise UsageError for a step's name that is no lower-case name."""
    if not _STEP.match(step):
        raise UsageError(
            f"a step cannot be called {step!r}", hint="lower-case words joined by hyphens"
        )


def init(
    folder: Path, source: BundleSource, redactor: Redactor, now: Callable[[], datetime]
) -> Bundle:
    """Make a bundle; it appears whole or not at all.

    Raises UsageError where something is there already, or where the experiment's name cannot be
    a Kubernetes label; CaptureError where the disk refuses.
    """
    if not _EXPERIMENT.match(source.experiment):
        raise UsageError(
            f"an experiment cannot be called {source.experiment!r}",
            hint="at most 63 letters, digits, dots, hyphens and underscores: it is a label, too",
        )
    if folder.is_symlink() or folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        is_bundle = (folder / SOURCE).exists()
        raise UsageError(
            "a bundle is already there" if is_bundle else "the folder is not empty",
            where=str(folder),
            hint="every run has a bundle of its own: give another folder",
        )
    if not folder.parent.is_dir() and any(p.is_file() for p in folder.parents):
        raise UsageError("a file stands where a folder should", where=str(folder.parent))
    with files.refusals_told(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}{files.PART}", dir=folder.parent))
        try:
            part.chmod(0o755)
            for name in FOLDERS:
                (part / name).mkdir()
            for name, text in _first_files(source, redactor, now()).items():
                files.write(part / name, text.encode(), is_new=True)
            # Renaming onto an empty folder replaces it; onto anything else it fails.
            part.rename(folder)
            files.sync_folder(folder.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Bundle(folder=folder, redactor=redactor, now=now)


def open_bundle(folder: Path, redactor: Redactor, now: Callable[[], datetime]) -> Bundle:
    """A bundle that was made before. Raises UsageError where there is none, or a sealed one."""
    must_exist(folder)
    bundle = Bundle(folder=folder, redactor=redactor, now=now)
    bundle._must_be_open()
    return bundle


def must_exist(folder: Path) -> None:
    """Raise UsageError where the folder is no bundle."""
    if not (folder / SOURCE).is_file():
        raise UsageError(
            "no evidence bundle", where=str(folder), hint="make one with `solscope bundle init`"
        )


def experiment_of(folder: Path) -> str:
    """The experiment that a bundle belongs to, as its SOURCE.md says; else the folder's name."""
    found = re.search(r"^- experiment: (\S+)$", (folder / SOURCE).read_text(), re.MULTILINE)
    return found[1] if found else folder.name


def _first_files(source: BundleSource, redactor: Redactor, made: datetime) -> dict[str, str]:
    said = {
        "experiment": source.experiment,
        "family": source.family,
        "who": source.who,
        "where": source.where,
        "when": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": source.commit,
        "intent": source.intent,
    }
    lines = [f"- {name}: {text or '(not stated)'}" for name, text in said.items()]
    text = "\n".join([f"# Source of {source.experiment}", "", *lines, "", _OBJECTS])
    return {
        SOURCE: redactor.text(text + "\n\n(none)\n"),
        "summary.md": _SUMMARY.format(experiment=source.experiment),
        "findings/01-observations.md": _OBSERVATIONS,
        "findings/02-mechanisms.md": _MECHANISMS,
        SOURCES: json.dumps({"captured_sources": []}, indent=2) + "\n",
        CONTEXT: context_text(MeasurementContext()),
        receipts.NAME: "",
    }


def context_text(context: MeasurementContext) -> str:
    """``context.yaml``: every field, ``null`` where it is not known."""
    body = {f.name: getattr(context, f.name) for f in fields(context) if f.name != "sections"}
    body["extra"] = dict(context.extra or {})
    for name, section in context.sections.items():
        body[name] = dict(section)
    return str(yaml.safe_dump(body, sort_keys=False, allow_unicode=True))
