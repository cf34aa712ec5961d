"""A campaign: what was measured, in cells, and what is claimed of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from solscope.model.context import MeasurementContext
from solscope.model.verdict import Analysis

KERNELS_SCHEMA_VERSION = 1
CELL_SCHEMA = "solscope.cell/1"
VERDICT_SCHEMA = "solscope.campaign-verdict/1"

AXES = ("K", "R", "H", "P", "A")


class Tier(StrEnum):
    """How far a campaign's numbers may go."""

    DRAFT = "DRAFT"
    VERDICT = "VERDICT"


class Standing(StrEnum):
    """What a gate that does not pass means."""

    PASS = "pass"
    DRAFT = "draft"
    """Not proven: more evidence could prove it."""
    REFUTED = "refuted"
    """The evidence speaks against what is claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One check of a campaign. ``promote`` says what would make it pass; empty where it does.

    ``where`` is the cell or the key of ``config.yaml`` that the reason speaks of.
    """

    gate: str
    standing: Standing
    reason: str
    where: str
    promote: str = ""

    @property
    def passes(self) -> bool:
        """Whether the check holds."""
        return self.standing is Standing.PASS


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a kernel comparison: five axes from 1 to 4, and a name.

    H is hardware specialisation and P the performance target: counters check both. K, R and A
    are the reviewer's own grades and are compared as numbers. ``cell`` is where the arm was
    measured; ``kernel`` a regular expression on full names that picks its kernels there (all of
    the cell's where ``None``).
    """

    name: str
    axes: Mapping[str, int]
    cell: str | None = None
    kernel: str | None = None

    def picks(self, name_full: str) -> bool:
        """Whether a kernel of this full name is the arm's."""
        return self.kernel is None or re.search(self.kernel, name_full) is not None

    def text(self) -> str:
        """The axes as people write them, such as ``K4/R1/H4/P4/A1``."""
        return "/".join(f"{axis}{self.axes[axis]}" for axis in AXES if axis in self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence about kernels that the counters must carry.

    ``says`` is ``at-roof``, the only claim that counters decide. ``kernel`` is a regular
    expression on full names, ``cell`` where to look; both ``None`` mean everywhere.
    """

    says: str
    kernel: str | None = None
    cell: str | None = None


_TO_BE_SAID = ("", "tbd", "tba", "todo", "fixme", "unknown", "-", "–", "—")


def is_open(said: str) -> bool:
    """Whether a text only holds the place of one, as ``TBD`` and ``???`` do.

    >>> is_open(" TBD. "), is_open("none")
    (True, False)
    """
    return said.strip().lower().rstrip(".?! ") in _TO_BE_SAID


def is_nothing(said: str) -> bool:
    """Whether a text says nothing, as ``none`` and ``TBD`` do.

    >>> is_nothing(" N/A "), is_nothing("fuse the norm")
    (True, False)
    """
    return is_open(said) or said.strip().lower().rstrip(".") in ("none", "n/a", "na")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLever:
    """What to do next: the change, what it may unlock, and the gate that proves or refutes it."""

    what: str
    unlock: str
    gate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignConfig:
    """``config.yaml`` of a campaign.

    ``krhpa_problems`` lists what is wrong with the rubric as it was written; the arms are then
    ``None``. ``end_to_end_share`` is the share (0 to 1) of end-to-end time that the profiled
    kernels take together. ``varies`` names the context fields that the comparison changes on
    purpose. ``wall`` documents why nothing is left to do.
    """

    name: str
    description: str = ""
    hw_key: str | None = None
    candidate: Arm | None = None
    baseline: Arm | None = None
    krhpa_problems: tuple[str, ...] = ()
    krhpa_exempt_reason: str | None = None
    claims: tuple[Claim, ...] = ()
    next_lever: NextLever | None = None
    wall: str | None = None
    end_to_end_share: float | None = None
    varies: tuple[str, ...] = ()
    focus: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureCheck:
    """Whether a capture can be trusted. ``problems`` are sentences, empty where it can."""

    problems: tuple[str, ...]
    is_sealed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One measured point: kernels of one bundle under one context.

    ``analysis`` is without launches and without session: enough to judge and to draw.
    ``run_id`` is the bundle's folder name.
    """

    id: str
    analysis: Analysis
    hw_key: str | None
    captured_sources: tuple[str, ...]
    context: MeasurementContext
    capture: CaptureCheck
    run_id: str
    added_at: str

    @property
    def has_counted_work(self) -> bool:
        """Whether FLOP and DRAM bytes of any kernel were counted."""
        return any(k.totals.intensity_pair is not None for k in self.analysis.kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign as its folder holds it. Cells are sorted by their id."""

    slug: str
    config: CampaignConfig
    cells: tuple[Cell, ...] = ()
    findings: tuple[ValueFinding, ...] = ()

    def cell(self, cell_id: str) -> Cell | None:
        """The cell of this id."""
        return next((cell for cell in self.cells if cell.id == cell_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignVerdict:
    """What the gates said, and the tier that follows: VERDICT where all pass, else DRAFT."""

    slug: str
    tier: Tier
    results: tuple[GateResult, ...]
    sol_rigor: str | None
    taken_at: str

    @property
    def passes(self) -> bool:
        """Whether every gate passes."""
        return self.tier is Tier.VERDICT


class FindingStatus(StrEnum):
    """Where a finding of people stands."""

    DONE = "done"
    IN_PROGRESS = "in progress"
    NOT_DONE = "not done"
    CLOSED_NEGATIVE = "closed negative"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFinding:
    """A lever that people found themselves, as ``value-findings.yaml`` holds it.

    ``max_win`` is a share (0 to 1) of end-to-end time; ``why`` is required where the finding is
    closed negative.
    """

    id: str
    title: str
    status: FindingStatus
    next_lever: str
    max_win: float | None = None
    cost: str | None = None
    gate: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A change to try, and what it rests on.

    ``max_win`` is the most that it can win, as a share (0 to 1) of the time that ``basis``
    names; ``None`` where the speed of light is not known. ``share`` is the kernel's own
    of that time. ``confidence`` is ``counted``, ``times`` (of a collective, whose whole time may
    hide), ``percentages`` or ``stated``; ``cost`` a class of ``COSTS``.
    """

    id: str
    what: str
    max_win: float | None
    basis: str
    confidence: str
    cost: str
    gate: str
    rests_on: str
    status: FindingStatus = FindingStatus.NOT_DONE
    score: float | None = None
    share: float | None = None
    cell: str | None = None
    kernel: str | None = None


COSTS: Mapping[str, int] = {"setting": 1, "library": 2, "fusion": 4, "kernel": 8}
"""Relative effort of a change: an engine's setting, another library, fusing, a new kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Levers that are open, best first; those that were refuted; those that are done."""

    open: tuple[Lever, ...] = ()
    refuted: tuple[ValueFinding, ...] = ()
    done: tuple[ValueFinding, ...] = ()
