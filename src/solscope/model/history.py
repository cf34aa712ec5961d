"""What the lake remembers: kernels of earlier captures, and the levers of each campaign."""

from __future__ import annotations

from dataclasses import dataclass

from solscope.model.campaign import Frontier, Lever
from solscope.model.conditions import Conditions, ContextFact
from solscope.model.context import MeasurementContext


@dataclass(frozen=True, slots=True, kw_only=True)
class PastKernel:
    """A kernel of one shape in one cell, as it was published.

    ``captured_at`` is ISO 8601 or ``None``; ``ns_per_launch`` is the mean of ``launches``.
    """

    campaign: str
    cell: str
    captured_at: str | None
    name: str
    name_full: str
    conditions: Conditions
    context: MeasurementContext
    launches: int
    ns_per_launch: float
    speed_of_light: float | None = None

    @property
    def place(self) -> str:
        """Campaign and cell."""
        return f"{self.campaign}/{self.cell}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCampaign:
    """A campaign's row; ``frontier`` is ``None`` where it was published without its levers."""

    slug: str
    tier: str
    published_at: str
    frontier: Frontier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The newest publish of each campaign in a lake."""

    campaigns: tuple[PastCampaign, ...] = ()
    kernels: tuple[PastKernel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A kernel's newest capture against the fastest earlier one of the same shape and workload.

    ``ratio`` is after over before. ``unlike`` are conditions that differ: the ratio then proves
    nothing. ``unknown`` are conditions and context fields that nobody stated. ``changed`` are
    context fields that differ and may be the cause.
    """

    before: PastKernel
    after: PastKernel
    ratio: float
    unlike: tuple[ContextFact, ...] = ()
    unknown: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def is_draft(self) -> bool:
        """Whether something is not known that could make the two unlike."""
        return bool(self.unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One lever over all campaigns: where it is open, and where it was refuted and why.

    ``open`` holds (campaign, lever), best first; ``refuted`` (campaign, why).
    """

    open: tuple[tuple[str, Lever], ...]
    refuted: tuple[tuple[str, str], ...] = ()

    @property
    def best(self) -> Lever:
        """The one that may win most for its cost."""
        return self.open[0][1]
