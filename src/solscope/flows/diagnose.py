"""Logs, commands, manifests and reports in, ranked causes out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from solscope.capture import diagnosis
from solscope.capture.diagnosis import Evidence
from solscope.errors import SolscopeError, UsageError
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.diagnosis import Outcome as Answer
from solscope.model.report import Device, Report
from solscope.model.roofline import Ceiling
from solscope.model.trace import TimelineReport

REPORT_MAGICS = (b"NVR\x00", b"\x28\xb5\x2f\xfd")
LARGEST_TABLE_BYTES = 16 << 20
SQLITE_MAGIC = b"SQLi"
GZIP_MAGIC = b"\x1f\x8b"
BUNDLE_TEXTS = (".cmd", ".stdout", ".stderr", ".log", ".txt", ".yaml", ".yml", ".json", ".jsonl")
BUNDLE_LIMIT = 400


@dataclass(frozen=True, slots=True)
class DiagnoseRequest:
    """Tell why a capture failed, or check an ncu command before it runs.

    Give whatever there is: the log of ncu, nsys, the server, kubectl; files of facts
    (/proc/driver/nvidia/params, /proc/PID/status, nvidia-smi output, an environment, a process
    tree); a benchmark's figures (JSON or CSV), held against the peak of their GPU; a pod's
    manifest; the command; the report. Quoted lines are redacted. Exit code 0: a cause was found,
    or all is well; 1: undecided, with the check that decides.
    """

    paths: tuple[str, ...] = option(
        "Logs and files of facts; - for stdin.", positional=True, default=()
    )
    command: tuple[str, ...] = option(
        'The command, as "ncu …"; alone it is checked before it runs.', default=()
    )
    pod: tuple[str, ...] = option("A pod's manifest or live object (YAML or JSON).", default=())
    env: tuple[str, ...] = option("An environment: a file, or NAME=VALUE.", default=())
    report: tuple[str, ...] = option(
        "The report that the capture wrote; or a timeline of the window (nsys SQLite, torch "
        "trace), against which a command's filters and counts are checked.",
        default=(),
    )
    bundle: str | None = option("An evidence bundle: its logs and reports are read.", default=None)
    ncu: str | None = option("The release of ncu, such as 2025.3.1.", default=None)
    format: Literal["table", "json", "markdown"] = option("What to print.", default="table")


def run(request: DiagnoseRequest, world: World) -> Outcome:
    """The verb."""
    from solscope.render import diagnosis as page

    evidence, reports, timelines = _gather(request, world)
    if not evidence and not reports and not timelines:
        raise UsageError(
            "nothing to diagnose", hint='solscope diagnose ncu.log, or --command "ncu …"'
        )
    try:
        found = diagnosis.diagnose(
            evidence,
            reports=reports,
            timelines=timelines,
            version=request.ncu,
            peak_of=_peak_of,
        )
    except OSError as error:
        raise UsageError(
            f"cannot be read: {error.strerror}", where=error.filename, hint="check the path"
        ) from error
    if request.format == "json":
        text = page.as_json(found)
    elif request.format == "markdown":
        text = page.markdown(found)
    else:
        text = page.table(found, width=world.width, color=world.color)
    return Outcome(value=found, text=text, exit_code=int(found.outcome is Answer.UNDECIDED))


def _gather(
    request: DiagnoseRequest, world: World
) -> tuple[list[Evidence], list[Report], list[TimelineReport]]:
    bundled = _bundled(request.bundle) if request.bundle else ()
    texts: list[str] = []
    given = [_report(path) for path in request.report]
    reports = [report for report in given if isinstance(report, Report)]
    timelines = [report for report in given if isinstance(report, TimelineReport)]
    for path in (*request.paths, *request.pod, *bundled):
        head = b"" if path == "-" else _head(path)
        if head.startswith(REPORT_MAGICS):
            reports += [r for r in [_report(path)] if isinstance(r, Report)]
            continue
        if head.startswith(SQLITE_MAGIC):
            timelines += [r for r in [_report(path)] if isinstance(r, TimelineReport)]
            continue
        texts.append(path)
        reports += [] if path == "-" else _tables(path)
    evidence = [_evidence(path) for path in world.progress(texts, "reading")]
    for value in request.env:
        evidence.append(_environment(value))
    for number, text in enumerate(request.command, 1):
        name = "--command" if len(request.command) == 1 else f"--command {number}"
        evidence.append(Evidence(name=name, text=text, is_command=True))
    return evidence, reports, timelines


def _peak_of(gpu: str, what: str) -> Ceiling | None:
    """The data sheet's ceiling of a GPU that a file of figures names, where its chip is known."""
    from solscope.analysis import chips, roofline
    from solscope.reports import tables

    device = Device(name=gpu, compute_capability=None)
    chip = chips.identify(device, tables.ceilings()).chip
    if chip is None:
        return None
    resource = what if what in ("dram", "fp32", "fp64") else f"tensor:{what}"
    return roofline.datasheet_ceiling(chip, resource)


def _tables(path: str) -> list[Report]:
    """The report that a text of moderate size holds beside its log lines, if a reader knows it."""
    from solscope.reports import formats

    try:
        if os.path.getsize(path) > LARGEST_TABLE_BYTES:
            return []
        if formats.kind_of(path) not in formats.COUNTERS:
            return []
        found = formats.read(path)
    except (OSError, SolscopeError):
        return []  # it is still read as a log
    return [found] if isinstance(found, Report) and found.launches else []


def _bundled(folder: str) -> Iterator[str]:
    root = Path(folder)
    if not root.is_dir():
        raise UsageError("no such bundle", where=folder, hint="name the folder of the bundle")
    files = [p for p in sorted(root.rglob("*")) if p.is_file()]
    for path in files[:BUNDLE_LIMIT]:
        if path.suffix in (*BUNDLE_TEXTS, ".ncu-rep", ".ncu-repz") and path.name != "manifest.json":
            yield str(path)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(4)
    except OSError as error:
        raise UsageError(
            f"cannot be read: {error.strerror}", where=path, hint="check the path"
        ) from error


def _evidence(path: str) -> Evidence:
    if path == "-":
        return Evidence(name="stdin", stream=sys.stdin.buffer)
    if _head(path).startswith(GZIP_MAGIC):
        import gzip

        with gzip.open(path, "rb") as stream:
            return Evidence(name=path, text=stream.read(1 << 26).decode("utf-8", "replace"))
    return Evidence(name=path, path=Path(path))


def _environment(value: str) -> Evidence:
    if "=" in value and not Path(value).exists():
        return Evidence(name="--env", text=value)
    return _evidence(value)


def _report(path: str) -> Report | TimelineReport:
    from solscope.reports import formats

    found = formats.read(path)
    if not isinstance(found, Report | TimelineReport):
        raise UsageError(
            "this is no report of ncu and no timeline",
            where=path,
            hint="`solscope read` shows what it holds",
        )
    return found
