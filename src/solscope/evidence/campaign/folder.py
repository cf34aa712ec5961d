"""Where each file of a campaign lies. Every write is whole or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from solscope.errors import ReportError, UsageError
from solscope.evidence.campaign import cell as cells
from solscope.evidence.campaign import config as configs
from solscope.evidence.campaign import context as contexts
from solscope.evidence.campaign import findings as value_findings
from solscope.evidence.campaign import text
from solscope.model.campaign import Campaign, CampaignConfig, Cell
from solscope.model.context import MeasurementContext

KERNELS, CONTEXT, CONFIG = "ncu_kernels.json", "context.yaml", "config.yaml"
RECEIPTS = "receipts.jsonl"
FINDINGS = "value-findings.yaml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignFolder:
    """``campaigns/<slug>/`` under ``root``."""

    root: Path
    slug: str

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.root / self.slug

    @property
    def config_path(self) -> Path:
        """Where ``config.yaml`` lies."""
        return self.path / CONFIG

    def file(self, name: str) -> Path:
        """A file at the top of the folder."""
        return self.path / name

    def cell_file(self, cell_id: str, name: str = KERNELS) -> Path:
        """A file of a cell."""
        return self.path / "cells" / cell_id / name


def named(root: str, slug: str) -> CampaignFolder:
    """The folder of a slug. Raises UsageError for a slug that is no plain name."""
    return CampaignFolder(root=Path(root), slug=plain(slug, "campaign"))


def plain(name: str, what: str) -> str:
    """A name that is safe as a folder's. Raises UsageError."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} is no name of a {what}",
            hint="letters, digits, dots, dashes and underscores; the first is a letter or digit",
        )
    return name


def every(root: str) -> Iterator[CampaignFolder]:
    """Every campaign under a folder, by slug."""
    place = Path(root)
    if place.is_dir():
        for path in sorted(place.iterdir()):
            if (path / CONFIG).is_file():
                yield CampaignFolder(root=place, slug=path.name)


def init(folder: CampaignFolder, config: bytes) -> Path:
    """Make the folder with its config. The same config twice changes nothing.

    Raises UsageError where the campaign is there with another config.
    """
    path = folder.config_path
    if path.exists() and path.read_bytes() != config:
        raise UsageError(
            "this campaign is there already, with another config",
            where=str(path),
            hint="edit that file, or choose another slug",
        )
    return text.write_whole(path, config)


def read_config(folder: CampaignFolder) -> CampaignConfig:
    """The campaign's config. Raises UsageError where there is no such campaign."""
    if not folder.config_path.is_file():
        raise UsageError(
            "no such campaign",
            where=str(folder.path),
            hint=f"solscope campaign init {folder.slug} --config config.yaml",
        )
    return configs.read(folder.config_path)


def read(folder: CampaignFolder) -> Campaign:
    """The whole campaign, cells sorted by id. Raises UsageError, ReportError."""
    config = read_config(folder)
    found = folder.file(FINDINGS)
    return Campaign(
        slug=folder.slug,
        config=config,
        cells=tuple(_cells(folder)),
        findings=value_findings.read(found) if found.is_file() else (),
    )


def _cells(folder: CampaignFolder) -> Iterator[Cell]:
    place = folder.path / "cells"
    if not place.is_dir():
        return
    for path in sorted(place.iterdir()):
        cell = read_cell(folder, path.name)
        if cell is not None:
            yield cell


def read_cell(folder: CampaignFolder, cell_id: str) -> Cell | None:
    """One cell, ``None`` where there is none. Raises UsageError, ReportError."""
    file = folder.cell_file(cell_id)
    if not file.is_file():
        return None
    return cells.decode(
        file.read_bytes(),
        cell_id=cell_id,
        context=_context(folder.cell_file(cell_id, CONTEXT)),
        where=str(file),
    )


def _context(path: Path) -> MeasurementContext:
    return contexts.read(path) if path.is_file() else MeasurementContext()


def write_cell(
    folder: CampaignFolder,
    cell: Cell,
    context: bytes | None,
    beside: Sequence[tuple[str, bytes]] = (),
) -> tuple[Path, ...]:
    """Write a cell, and files ``beside`` it by name, and read it again.

    Its context comes first, so that no reader sees kernels under an old context. Raises
    ReportError where what lies there then is not what was written.
    """
    files = [] if context is None else [(folder.cell_file(cell.id, CONTEXT), context)]
    files += [(folder.cell_file(cell.id, name), content) for name, content in beside]
    files.append((folder.cell_file(cell.id), cells.encode(cell)))
    written = text.write_together(files)
    if RECEIPTS not in (name for name, _content in beside):
        # Those of a capture that was in the cell before.
        folder.cell_file(cell.id, RECEIPTS).unlink(missing_ok=True)
    found = read_cell(folder, cell.id)
    if found is None or len(found.analysis.kernels) != len(cell.analysis.kernels):
        raise ReportError("what was written is not what lies there", where=str(written[-1]))
    return written
