"""``solscope publish``: a campaign, judged by its gates, into the lake."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from solscope.analysis import frontier
from solscope.errors import ReportError, UsageError
from solscope.evidence.campaign import context as contexts
from solscope.evidence.campaign import folder as folders
from solscope.evidence.campaign import text, verdicts
from solscope.flows import gate
from solscope.flows.request import option
from solscope.flows.world import Outcome, World
from solscope.lake import delta, rows, trouble
from solscope.lake.delta import Lake
from solscope.model.lake import (
    CampaignSource,
    CellSource,
    Gap,
    Judgement,
    Publication,
    SourceFile,
)
from solscope.render import publication as page

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """Put a campaign into the lake. Nothing is written without --yes.

    Strict by default: what the gates refuse is refused, with exit code 1. With --no-strict it is
    published as DRAFT, its gaps on its row. The same campaign twice gives the same rows.
    """

    slug: str = option("The campaign.", positional=True)
    lake: str = option("The lake: a folder or s3://bucket/prefix.", default="lake")
    campaigns: str = option("The folder of all campaigns.", default="campaigns")
    strict: bool = option("Refuse what the gates refuse; the default.", default=False)
    no_strict: bool = option("Publish as DRAFT in spite of gaps.", default=False)
    replace: bool = option(
        "Take the place of another campaign of this slug in the lake.", default=False
    )
    yes: bool = option("Really write; a rehearsal without it.", default=False)
    store: tuple[str, ...] = option(
        "An option of the object store, KEY=VALUE, such as AWS_ENDPOINT_URL=... May be repeated.",
        default=(),
    )
    format: Literal["table", "json"] = option("Output format.", default="table")


Judge = Callable[[PublishRequest, World], Judgement]


def run(request: PublishRequest, world: World) -> Outcome:
    """Judge, make the rows, write them if told so, and say what was or would be done."""
    return publish(request, world, judge=_gate_results)


def publish(request: PublishRequest, world: World, *, judge: Judge) -> Outcome:
    """The same with other gates."""
    lake = open_lake(request.lake, request.store)
    if request.strict and request.no_strict:
        raise UsageError("--strict and --no-strict exclude each other", hint="leave one out")
    source = read(Path(request.campaigns), request.slug)
    judgement = judge(request, world)
    made = rows.build(
        source,
        judgement,
        strict=not request.no_strict,
        tool_version=importlib.metadata.version("solscope"),
        published_at=world.now(),
    )
    refused = bool(judgement.gaps) and not request.no_strict
    written = None
    if not (refused or request.replace):
        delta.refuse_another(lake, made)
    if request.yes and not refused:
        written = delta.publish(lake, made, replace=request.replace)
    known = written.already_there if written else not refused and delta.is_published(lake, made)
    done = Publication(
        campaign=source.slug,
        publish_id=made.publish_id,
        lake=request.lake,
        tier="DRAFT" if judgement.gaps else judgement.tier,
        strict=not request.no_strict,
        counts={name: len(content) for name, content in made.tables.items()},
        written=written is not None and not written.already_there,
        already_there=known,
        refused=refused,
        gaps=judgement.gaps,
        retries=written.retries if written else 0,
    )
    shown = page.as_json(done) if request.format == "json" else page.as_text(done)
    return Outcome(value=done, text=shown, exit_code=1 if refused else 0)


def open_lake(location: str, store: tuple[str, ...]) -> Lake:
    """The lake of ``--lake`` and ``--store``.

    Raises UsageError for an option without a value, LakeError where the extra is not installed.
    """
    trouble.require_libraries()
    options = {}
    for item in store:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UsageError(f"--store {item!r} is not KEY=VALUE", hint="such as AWS_REGION=...")
        options[name] = value
    scheme, separator, _ = location.partition("://")
    if separator and scheme not in ("s3", "s3a", "file"):
        raise UsageError(
            f"no lake can lie at {scheme}://", hint="give a folder or s3://bucket/prefix"
        )
    return Lake(location=location, options=options)


def _gate_results(request: PublishRequest, world: World) -> Judgement:
    """What the gates say of the campaign now; an older ``verdict.json`` is not believed."""
    campaign = folders.read(folders.named(request.campaigns, request.slug))
    verdict = gate.judge(campaign, world)
    gaps = tuple(
        Gap(gate=result.gate, reason=f"{result.where}: {result.reason}")
        for result in verdict.results
        if not result.passes
    )
    # When the gates ran is no content: running them again makes no new publish.
    said = {key: value for key, value in verdicts.document(verdict).items() if key != "taken_at"}
    return Judgement(
        tier="VERDICT" if verdict.passes else "DRAFT",
        gaps=gaps,
        frontier=frontier.rank(campaign),
        document=said,
    )


def read(campaigns: Path, slug: str) -> CampaignSource:
    """The files of a campaign, parsed. Raises UsageError, ReportError naming the file."""
    if not _SLUG.fullmatch(slug):
        raise UsageError(f"{slug!r} is no slug", hint="letters, digits, dot, dash, underscore")
    folder = campaigns / slug
    if not folder.is_dir():
        raise UsageError(
            "there is no such campaign",
            where=str(folder),
            hint="make one with `solscope campaign init`, or give --campaigns",
        )
    files: list[SourceFile] = []
    cells = tuple(_cells(folder, files))
    if not cells:
        raise UsageError(
            "the campaign has no cell with ncu_kernels.json",
            where=str(folder),
            hint="add one with `solscope campaign add`",
        )
    return CampaignSource(
        slug=slug,
        config=_mapping(folder, "config.yaml", files) or {},
        cells=cells,
        files=tuple(files),
    )


def _cells(folder: Path, files: list[SourceFile]) -> Iterator[CellSource]:
    for path in sorted(folder.glob("cells/*/ncu_kernels.json")):
        below = f"cells/{path.parent.name}"
        context = _mapping(folder, f"{below}/context.yaml", files)
        yield CellSource(
            cell=path.parent.name,
            document=_mapping(folder, f"{below}/ncu_kernels.json", files) or {},
            launches=_mapping(folder, f"{below}/launches.json", files),
            context=context,
            known=contexts.parse(context or {}),
            receipts=_receipts(folder, f"{below}/receipts.jsonl", files),
        )


def _mapping(folder: Path, name: str, files: list[SourceFile]) -> Mapping[str, Any] | None:
    """What a YAML or JSON file holds, ``None`` where there is none. Its digest is kept."""
    import msgspec

    content = _bytes(folder, name, files)
    if content is None:
        return None
    if not name.endswith(".json"):
        hint = "see docs/reference/campaign-files.md"
        return text.parse_yaml(content, where=str(folder / name), hint=hint)
    try:
        document = msgspec.json.decode(content)
    except msgspec.MsgspecError as error:
        raise ReportError(" ".join(str(error).split()), where=str(folder / name)) from error
    if not isinstance(document, dict):
        raise ReportError("not a mapping of names to values", where=str(folder / name))
    return document


def _receipts(folder: Path, name: str, files: list[SourceFile]) -> tuple[Mapping[str, Any], ...]:
    import msgspec

    content = _bytes(folder, name, files) or b""
    try:
        return tuple(
            msgspec.json.decode(line, type=dict[str, Any])
            for line in content.splitlines()
            if line.strip()
        )
    except msgspec.MsgspecError as error:
        raise ReportError(str(error), where=str(folder / name)) from error


def _bytes(folder: Path, name: str, files: list[SourceFile]) -> bytes | None:
    path = folder / name
    if not path.exists():
        return None
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=str(path)) from error
    digest = hashlib.sha256(content).hexdigest()
    files.append(SourceFile(path=name, sha256=digest, size_bytes=len(content)))
    return content
