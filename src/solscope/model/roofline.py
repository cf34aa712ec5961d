"""Ceilings, the points under them, and what binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from re import Pattern

from solscope.model.finding import Absence


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One limit, per GPU, dense unless the key says sparse.

    ``peak`` is in base units (FLOP/s, OP/s, bytes/s or bytes); ``value`` and ``units`` are as
    the ceilings file writes them. ``key`` is the full key path, such as
    ``b200_sm100.nvfp4_dense_pflops``. ``clock_hz`` is the clock that the figure is quoted at.
    """

    key: str
    value: float
    units: str
    peak: float
    source: str
    clock_basis: str | None = None
    clock_hz: float | None = None
    confidence: str | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A GPU product with its ceilings (metric name to :class:`Ceiling`)."""

    key: str
    name: str
    ceilings: Mapping[str, Ceiling]
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    match: Pattern[str] | None = None
    family: str | None = None
    boost_clock_hz: float | None = None
    dense_ops_per_clk_per_sm: Mapping[str, float] = field(default_factory=dict)
    dram_bytes_per_s: float | None = None
    memory_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingSet:
    """Every chip known, and which ceiling a kernel category is judged against by default."""

    chips: Mapping[str, Chip]
    category_ceiling_map: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Achieved rate over one ceiling. ``value`` is a fraction (1.0 is the speed of light).

    ``resource`` is ``dram``, ``l2``, ``fp32``, ``fp64``, ``fp16`` or ``tensor:<type>``;
    ``ceiling`` names the limit by key path or by the metric it was read from; ``clock_hz`` is
    the clock that limit holds at.
    """

    resource: str
    value: float
    achieved: float
    peak: float
    ceiling: str
    clock_hz: float | None = None
    basis: str = ""  # report, attributes, table, datasheet


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """A kernel under its roofs.

    ``profiled`` and ``datasheet`` hold the standing against every resource that was measured;
    the binding one is the largest. Intensity in FLOP per DRAM byte, ``None`` with an absence
    where it was not measured or the kernel is L2-resident. ``roofless`` names the resources that
    did a part of the work that matters and whose roof is not known, the largest part first: what
    stands far below every other roof may stand at one of these.
    """

    intensity: float | None
    flop_per_s: float | None
    dram_bytes_per_s: float | None
    profiled: tuple[Standing, ...] = ()
    datasheet: tuple[Standing, ...] = ()
    is_l2_resident: bool = False
    absences: tuple[Absence, ...] = ()
    roofless: tuple[str, ...] = ()

    @property
    def profiled_binding(self) -> Standing | None:
        """The roof that the kernel stands nearest to, at the clock of the profile.

        L2 is left out: its standing is a busy percentage, not counted work over a ceiling.
        """
        counted = [s for s in self.profiled if s.resource != "l2"]
        return max(counted, key=lambda s: s.value, default=None)

    @property
    def datasheet_binding(self) -> Standing | None:
        """The same roof against the data sheet; the nearest of the data sheet's where the
        profile has none."""
        binding = self.profiled_binding
        for standing in self.datasheet:
            if binding is not None and standing.resource == binding.resource:
                return standing
        return max(self.datasheet, key=lambda s: s.value, default=None) if not binding else None
