"""What an evidence bundle holds of ncu: report files, or CSV pages by kernel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solscope.errors import ReportError, UsageError

SOURCES = "capture_sources.json"
PROFILES = "ncu-profiles"
CONTEXT = "context.yaml"
MANIFEST = "manifest.json"
RECEIPTS = "receipts.jsonl"
REPORTS = (".ncu-rep", ".ncu-repz", ".ncu-rep.gz")
RAW, SPEED = "-raw.csv", "-sol.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The CSV pages of one capture: ``raw`` and ``speed``, at least one of them."""

    stem: str
    raw: Path | None
    speed: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuFiles:
    """Files of ncu in a bundle; ``pages`` leaves out captures that have a report file."""

    folder: Path
    captured_sources: tuple[str, ...]
    reports: tuple[Path, ...]
    pages: tuple[Page, ...]
    context: Path | None
    receipts: Path | None


def declared(folder: Path) -> tuple[str, ...] | str:
    """What ``capture_sources.json`` declares; a sentence where it is not there.

    Raises UsageError where the folder does not exist, ReportError where the file is malformed.
    """
    if not folder.is_dir():
        raise UsageError("no such bundle", where=str(folder), hint="name the bundle's folder")
    path = folder / SOURCES
    if not path.is_file():
        return f"there is no {SOURCES} in the bundle, so nothing says that ncu was captured"
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, OSError) as error:
        raise ReportError(f"not JSON: {error}", where=str(path), hint=_HINT) from error
    sources = document.get("captured_sources") if isinstance(document, dict) else None
    if not isinstance(sources, list) or not all(isinstance(s, str) for s in sources):
        raise ReportError("captured_sources is not a list of names", where=str(path), hint=_HINT)
    return tuple(sources)


_HINT = 'write {"captured_sources": ["ncu"]}'


def find(folder: Path, captured_sources: tuple[str, ...]) -> NcuFiles:
    """The files of ncu in a bundle that declares ncu.

    Raises ReportError where there is none, or where one is empty.
    """
    inside = folder / PROFILES
    places = [place for place in (inside, folder) if place.is_dir()]
    for place in places:
        files = sorted(path for path in place.iterdir() if path.is_file())
        reports = tuple(path for path in files if path.name.endswith(REPORTS))
        pages = _pages(files, {_stem(path) for path in reports})
        if reports or pages:
            context, receipts = folder / CONTEXT, folder / RECEIPTS
            found = NcuFiles(
                folder=folder,
                captured_sources=captured_sources,
                reports=reports,
                pages=pages,
                context=context if context.is_file() else None,
                receipts=receipts if receipts.is_file() else None,
            )
            _refuse_empty(found)
            return found
    raise ReportError(
        f"the bundle declares ncu and holds no file of it: missing {PROFILES}/*.ncu-rep and "
        f"{PROFILES}/*{RAW} or *{SPEED}",
        where=str(folder),
        hint="copy the reports out of the pod again, or take ncu out of captured_sources",
    )


def _stem(path: Path) -> str:
    for ending in (*REPORTS, RAW, SPEED):
        if path.name.endswith(ending):
            return path.name.removesuffix(ending)
    return path.stem


def _pages(files: list[Path], covered: set[str]) -> tuple[Page, ...]:
    found: dict[str, dict[str, Path]] = {}
    for path in files:
        for kind in (RAW, SPEED):
            if path.name.endswith(kind) and _stem(path) not in covered:
                found.setdefault(_stem(path), {})[kind] = path
    return tuple(
        Page(stem=stem, raw=pair.get(RAW), speed=pair.get(SPEED)) for stem, pair in found.items()
    )


def _refuse_empty(found: NcuFiles) -> None:
    pages = [path for page in found.pages for path in (page.raw, page.speed) if path is not None]
    for path in (*found.reports, *pages):
        if path.stat().st_size == 0:
            raise ReportError(
                "the bundle declares ncu and this file of it is empty (0 bytes)",
                where=str(path),
                hint="copy it out of the pod again; `solscope diagnose LOG` tells why none came",
            )


def seal_problems(folder: Path, files: tuple[Path, ...]) -> tuple[bool, tuple[str, ...]]:
    """(whether the bundle is sealed, how its files differ from the manifest)."""
    path = folder / MANIFEST
    if not path.is_file():
        return False, ()
    try:
        digests = _digests(json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False, (f"{MANIFEST} cannot be read",)
    problems = []
    for file in files:
        name = file.relative_to(folder).as_posix()
        if name not in digests:
            problems.append(f"{name} is not in the manifest of its sealed bundle")
        elif hashlib.sha256(file.read_bytes()).hexdigest() != digests[name]:
            problems.append(f"{name} is not what was sealed: its digest differs")
    return True, tuple(problems)


def _digests(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Digest by path, for a list of ``{path, sha256}`` or a mapping of path to digest."""
    given: Any = manifest.get("artifacts", manifest.get("files"))
    if isinstance(given, list):
        return {row["path"]: row["sha256"] for row in given}
    return {path: d if isinstance(d, str) else d["sha256"] for path, d in given.items()}
