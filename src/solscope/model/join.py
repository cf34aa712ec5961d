"""The same kernel in samples, on a timeline and under counters: what each source says of it."""

from __future__ import annotations

from dataclasses import dataclass

from solscope.model.kernel import KernelIdentity
from solscope.model.trace import SampleReport, TimelineReport
from solscope.model.verdict import Analysis, KernelVerdict

JOIN_SCHEMA = "solscope.join/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSide:
    """A kernel's wall-clock time, from a timeline. Never from ncu, whose runs are replayed.

    ``total_ns`` is that of the GPU on which the kernel ran longest; ``share`` (0 to 1) is of the
    time of all kernels on that GPU. ``skew`` is the longest GPU's total over the shortest's.
    ``count_is_exact`` is ``False`` where graph launches may hide executions.
    """

    total_ns: float | None
    mean_ns: float | None
    launches: int | None
    share: float | None
    gpus: int
    skew: float | None
    variants: int
    count_is_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedKernel:
    """One kernel with what each source knows; ``None`` and empty where a source lacks it.

    ``confidence`` is ``exact`` (same name with template arguments), ``function`` (same function,
    variants merged), ``truncated`` (one name is the unique beginning of the other) or ``single``
    (only one source has it). ``estimated_ns`` turns a share of samples into time: share times
    the time of all kernels on a GPU, from another run, so an estimate. ``win_bound`` (0 to 1) is
    the part of all GPU time that would be saved if the kernel ran at its own ceiling.
    """

    name: str
    name_full: str
    identity: KernelIdentity
    confidence: str
    sample_share: float | None = None
    time: TimeSide | None = None
    counters: tuple[KernelVerdict, ...] = ()
    estimated_ns: float | None = None
    win_bound: float | None = None
    verdict: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sources(self) -> int:
        """How many kinds of source know the kernel."""
        known = (self.sample_share is not None, self.time is not None, bool(self.counters))
        return sum(known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """All kernels of all sources, those with the most time first."""

    samples: tuple[SampleReport, ...]
    timelines: tuple[TimelineReport, ...]
    analysis: Analysis | None
    kernels: tuple[JoinedKernel, ...]
    notes: tuple[str, ...] = ()
