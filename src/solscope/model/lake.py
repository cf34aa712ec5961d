"""What the lake is told of a campaign: its files, how it was judged, the rows made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from solscope.model.campaign import Frontier
from solscope.model.context import MeasurementContext

Tier = Literal["VERDICT", "DRAFT"]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of a campaign as it was read: its path below the campaign's folder."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSource:
    """One cell: the content of its ``ncu_kernels.json`` and of the files beside it.

    ``context`` is what ``context.yaml`` says, ``known`` what could be taken of it.
    """

    cell: str
    document: Mapping[str, Any]
    launches: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    known: MeasurementContext = field(default_factory=MeasurementContext)
    receipts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSource:
    """A campaign's files, parsed and otherwise untouched."""

    slug: str
    config: Mapping[str, Any]
    cells: tuple[CellSource, ...]
    files: tuple[SourceFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What keeps a campaign from being a VERDICT: the gate that failed, and why."""

    gate: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the gates said. ``tier`` is what was claimed and found proven; DRAFT with any gap.

    ``frontier`` holds the levers as they stood; ``None`` where nobody ranked them. ``document`` is
    what ``verdict.json`` would say now, without ``taken_at``: when gates ran is no content.
    """

    tier: Tier
    gaps: tuple[Gap, ...] = ()
    frontier: Frontier | None = None
    document: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRows:
    """All rows of one publish. ``publish_id`` is a digest of their content: same campaign, same id.

    ``tables`` maps each table's name to its rows; ``campaigns`` holds exactly one.
    """

    campaign: str
    publish_id: str
    tables: Mapping[str, tuple[Row, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a publish did, or would do. ``counts`` are the rows of each table.

    ``refused`` means that gaps stand and it was to be strict.
    """

    campaign: str
    publish_id: str
    lake: str
    tier: Tier
    strict: bool
    counts: Mapping[str, int]
    written: bool
    already_there: bool
    refused: bool = False
    gaps: tuple[Gap, ...] = ()
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A query's result. ``types`` are DuckDB's names of the columns' types."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """A query that solscope ships."""

    name: str
    summary: str
    sql: str = field(repr=False)
