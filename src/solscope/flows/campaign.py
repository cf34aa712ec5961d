"""A campaign is made, and bundles become its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from solscope.errors import ReportError, SolscopeError, UsageError
from solscope.evidence.campaign import bundle as bundles
from solscope.evidence.campaign import config as configs
from solscope.evidence.campaign import context as contexts
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import text
from solscope.evidence.campaign.bundle import NcuFiles, Page
from solscope.evidence.campaign.cell import bare
from solscope.flows import launch_file, twins
from solscope.flows.analyze import analyze
from solscope.flows.read import counters
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.model.campaign import CampaignConfig, CaptureCheck, Cell
from solscope.model.context import MeasurementContext
from solscope.model.finding import Severity
from solscope.model.report import KernelLaunch, PlainMetrics, Report
from solscope.model.verdict import Analysis
from solscope.reports import formats


@dataclass(frozen=True, slots=True)
class CampaignRequest:
    """Make a campaign, or add a bundle to it as a cell.

    `campaign init SLUG --config config.yaml` makes campaigns/SLUG. `campaign add SLUG --cell CELL
    BUNDLE` reads the bundle's .ncu-rep files, or its *-raw.csv and *-sol.csv pages, into
    cells/CELL/ncu_kernels.json, with the context that the bundle states.
    """

    action: Literal["init", "add"] = option("init or add.", positional=True)
    slug: str = option("The campaign's name, which is its folder's.", positional=True)
    bundle: str | None = option("The evidence bundle's folder.", positional=True, default=None)
    config: str | None = option("init: the campaign's config.yaml.", default=None)
    cell: str | None = option("add: the cell's name.", default=None)
    hw_key: str | None = option("add: the chip's key in the ceilings file.", default=None)
    context: str | None = option(
        "add: this context.yaml, in place of the bundle's own.", default=None
    )
    ceilings: str | None = option("Lay this YAML file over the packaged ceilings.", default=None)
    locale: str | None = option("Locale of the machine that printed the CSV pages.", default=None)
    format: Literal["text", "json"] = option("What to print.", default="text")
    dry_run: bool = option("add: read and show, write nothing.", default=False)
    campaigns: str = option("The folder of all campaigns.", default="campaigns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A bundle that does not declare ncu."""

    bundle: str
    reason: str


def run(request: CampaignRequest, world: World) -> Outcome:
    """The verb. Raises UsageError, ReportError."""
    folder = folders.named(request.campaigns, request.slug)
    if request.action == "init":
        return _init(folder, request)
    return _add(folder, request, world)


def _init(folder: folders.CampaignFolder, request: CampaignRequest) -> Outcome:
    from solscope.render.campaign import imports

    if request.config is None:
        raise UsageError(
            "init needs --config",
            hint="a YAML file with name, description, and krhpa or krhpa_exempt_reason",
        )
    source = Path(request.config)
    config = configs.read(source)
    written = folders.init(folder, text.read_bytes(source, hint="check the path"))
    shown = imports.made_json if request.format == "json" else imports.made
    return Outcome(value=config, text=shown(folder.slug, config), files=(str(written),))


def _add(folder: folders.CampaignFolder, request: CampaignRequest, world: World) -> Outcome:
    from solscope.render.campaign import imports

    if request.bundle is None or request.cell is None:
        raise UsageError(
            "add needs a bundle and --cell",
            hint=f"solscope campaign add {folder.slug} --cell CELL BUNDLE",
        )
    cell_id = folders.plain(request.cell, "cell")
    config = folders.read_config(folder)
    place = Path(request.bundle)
    sources = bundles.declared(place)
    reason = sources if isinstance(sources, str) else _undeclared(sources)
    if isinstance(sources, str) or reason is not None:
        skipped = Skipped(bundle=str(place), reason=reason or "")
        said = imports.skipped_json if request.format == "json" else imports.skipped
        return Outcome(value=skipped, text=said(skipped.bundle, skipped.reason))
    files = bundles.find(place, sources)
    source = Path(request.context) if request.context else files.context
    cell, launches = _cell(cell_id, files, source, config, request, world)
    if source is None:
        cell = replace(cell, context=_kept_context(folder, cell))
    written: tuple[Path, ...] = ()
    if not request.dry_run:
        given = None if source is None else text.read_bytes(source, hint="check the path")
        beside = [(launch_file.NAME, launches), *_receipts(files.receipts)]
        written = folders.write_cell(folder, cell, given, beside)
    shown = imports.added_json if request.format == "json" else imports.added
    return Outcome(
        value=cell,
        text=shown(cell, folder.slug, is_dry=request.dry_run),
        files=tuple(map(str, written)),
    )


def _receipts(path: Path | None) -> Iterator[tuple[str, bytes]]:
    """The capture's receipts, for the lake. Raises ReportError for a line that is none."""
    if path is None:
        return
    content = text.read_bytes(path, hint="check the bundle")
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            is_receipt = not line.strip() or isinstance(json.loads(line), dict)
        except ValueError:
            is_receipt = False
        if not is_receipt:
            raise ReportError(
                "no receipt: not a JSON object",
                where=f"{path}:{number}",
                hint="solscope writes this file; restore it from the sealed copy",
            )
    yield folders.RECEIPTS, content


def _kept_context(folder: folders.CampaignFolder, cell: Cell) -> MeasurementContext:
    """What was stated in the cell's folder, where the same reports come again without a context.

    Raises UsageError where the reports are others: their numbers would stand under it.
    """
    stated = folder.cell_file(cell.id, folders.CONTEXT)
    if not stated.is_file():
        return cell.context
    try:
        before = folders.read_cell(folder, cell.id)
    except ReportError:  # a cell that cannot be read is about to be replaced
        before = None
    if before is None or _digests(before) != _digests(cell):
        raise UsageError(
            "the cell has a context, and it is that of other reports",
            where=str(stated),
            hint="give --context, put a context.yaml into the bundle, or choose another cell",
        )
    return contexts.read(stated)


def _digests(cell: Cell) -> list[str | None]:
    return sorted((r.provenance.sha256 for r in cell.analysis.reports), key=str)


def _undeclared(sources: Sequence[str]) -> str | None:
    if "ncu" in sources:
        return None
    listed = ", ".join(sources) or "nothing"
    return f"{bundles.SOURCES} declares {listed}, not ncu"


def _cell(
    cell_id: str,
    files: NcuFiles,
    context: Path | None,
    config: CampaignConfig,
    request: CampaignRequest,
    world: World,
) -> tuple[Cell, bytes]:
    """The cell, and its launches as a file of their own."""
    reports = tuple(_reports(files, request, world))
    twins.refuse(reports)
    wanted = request.hw_key or config.hw_key
    analysis = analyze(reports, chip=wanted, ceilings_path=request.ceilings)
    cell = Cell(
        id=cell_id,
        analysis=bare(analysis),
        # A part of a key, such as h200, may have been given: the file names the chip in full.
        hw_key=_only_chip(analysis),
        captured_sources=files.captured_sources,
        context=MeasurementContext() if context is None else contexts.read(context),
        capture=_check(files, reports, context),
        run_id=files.folder.resolve().name,
        added_at=world.now().isoformat(timespec="seconds"),
    )
    return cell, launch_file.encode(analysis)


def _only_chip(analysis: Analysis) -> str | None:
    """The chip, where all reports are of one."""
    keys = {chip.key for chip in analysis.chips if chip is not None}
    return keys.pop() if len(keys) == 1 and None not in analysis.chips else None


def _reports(files: NcuFiles, request: CampaignRequest, world: World) -> Iterator[Report]:
    pages = {page.stem: page for page in files.pages}
    for path in world.progress([str(path) for path in files.reports], "reading"):
        yield _with_results(_readable(Path(path), request), Path(path))
    for stem in world.progress(list(pages), "reading"):
        yield _of_pages(pages[stem], request)


def _readable(path: Path, request: CampaignRequest) -> Report:
    try:
        return counters(formats.read(str(path), locale=request.locale))
    except SolscopeError as error:
        raise ReportError(
            f"the bundle declares ncu and this file of it is malformed: {error.what}",
            where=str(path),
            hint=error.hint or "copy it out of the pod again",
        ) from error


def _with_results(report: Report, path: Path) -> Report:
    if not report.launches and not report.complete:
        raise ReportError(
            "the bundle declares ncu and this file of it was cut before its first result",
            where=str(path),
            hint="copy it out of the pod again",
        )
    if not report.launches:
        raise ReportError(
            "the bundle declares ncu and this file of it holds no result: the profiler recorded "
            "nothing",
            where=str(path),
            hint="look at the capture's log: `solscope diagnose LOG`",
        )
    return report


def _of_pages(page: Page, request: CampaignRequest) -> Report:
    """One report of the raw page and the speed-of-light page of the same capture.

    The raw page is the base; what only the other page holds is added, launch by launch.
    """
    found = [
        _with_results(_readable(path, request), path)
        for path in (page.raw, page.speed)
        if path is not None
    ]
    base = found[0]
    if len(found) == 1:
        return base
    other = found[1]
    ours, theirs = list(base.launches), list(other.launches)
    if [launch.name for launch in ours] != [launch.name for launch in theirs]:
        raise ReportError(
            f"{len(ours)} launches in the raw page and {len(theirs)} in the other, or of other "
            "kernels: the two pages are not of one capture",
            where=f"{page.raw} and {page.speed}",
            hint="print both pages from the same report again",
        )
    merged = [_merged(a, b) for a, b in zip(ours, theirs, strict=True)]
    return replace(base, launches=merged, issues=(*base.issues, *other.issues))


def _merged(base: KernelLaunch, other: KernelLaunch) -> KernelLaunch:
    values = {name: other.metrics[name] for name in other.metrics}
    values.update({name: base.metrics[name] for name in base.metrics})
    instances = {name: found for name in base.metrics if (found := base.metrics.instances(name))}
    return replace(
        base,
        metrics=PlainMetrics(values, instances, base.metrics.valueless()),
        details=base.details if base.details.sections() else other.details,
    )


def _check(files: NcuFiles, reports: Sequence[Report], context: Path | None) -> CaptureCheck:
    """What speaks against the capture: cut files, blocking issues, digests that differ.

    A context of the bundle's own is sealed with it, as the list of its sources is.
    """
    problems: list[str] = []
    for report in reports:
        name = Path(report.provenance.path).name
        if not report.complete:
            problems.append(f"{name} was cut: only the results before the cut are here")
        problems += [
            f"{name}: {issue.what}" for issue in report.issues if issue.severity is Severity.BLOCKS
        ]
    paths = [files.folder / bundles.SOURCES, *files.reports]
    paths += [] if context is None or context != files.context else [context]
    paths += [p for page in files.pages for p in (page.raw, page.speed) if p is not None]
    is_sealed, differ = bundles.seal_problems(files.folder, tuple(paths))
    return CaptureCheck(problems=(*problems, *differ), is_sealed=is_sealed)
