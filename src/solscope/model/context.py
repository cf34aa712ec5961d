"""The context of a measurement: what must be known before a number may leave the desk.

Field names are the keys of ``context.yaml``, section by section. ``None`` means not known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What ran on what. ``hardware`` is a key of the ceilings file, such as ``b200_sm100``."""

    model: str | None = None
    model_path: str | None = None
    hardware: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """Degrees of parallelism, and the strategy's name as the engine calls it."""

    tensor: int | None = None
    data: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    strategy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The engine's settings that move the numbers."""

    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    cudagraph_mode: str | None = None
    async_scheduling: bool | None = None
    prefix_caching: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One exact shape: one number each for tokens in, tokens out and concurrency."""

    dataset: str | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    concurrency: int | None = None
    num_prompts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """``state`` is ``warm`` or ``cold``; ``tier`` is ``latency`` or ``throughput``."""

    state: str | None = None
    tier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What was installed: engine, its version or commit, image, and what sent the requests."""

    engine: str | None = None
    version: str | None = None
    image: str | None = None
    bench_backend: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Repeated runs of one quantity: how many, mean and standard deviation in ``unit``."""

    n: int
    mean: float
    std: float
    quantity: str
    unit: str

    def text(self) -> str:
        """Such as ``TPOT 12.1 ± 0.3 ms, n = 5``."""
        return f"{self.quantity} {self.spread()}, n = {self.n}"

    def spread(self) -> str:
        """Mean and standard deviation with their unit, such as ``12.1 ± 0.3 ms``."""
        return f"{exact(self.mean)} ± {exact(self.std)} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounding:
    """What makes the number a proof.

    ``ceiling_key`` is a chip or a key path of the ceilings file. ``sol_rigor``: ``L1`` estimated,
    ``L2`` timed, ``L3`` ncu's percentages, ``L4`` FLOP and DRAM bytes counted.
    """

    ceiling_key: str | None = None
    sol_rigor: str | None = None
    trials: Trials | None = None
    same_node: bool | None = None
    baseline: str | None = None
    baseline_is_production: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementContext:
    """Everything that a number of one cell depends on.

    ``refused`` holds what the file said and could not be taken, by dotted name, with the reason:
    such a field is ``None`` here.
    """

    identity: Identity = Identity()
    parallelism: Parallelism = Parallelism()
    serving: Serving = Serving()
    workload: Workload = Workload()
    regime: Regime = Regime()
    stack: Stack = Stack()
    grounding: Grounding = Grounding()
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def values(self) -> Iterator[tuple[str, object]]:
        """Every field by its dotted name, in order; trials as one value."""
        for section in SECTIONS:
            part = getattr(self, section)
            for item in dataclasses.fields(part):
                yield f"{section}.{item.name}", getattr(part, item.name)

    def missing(self) -> tuple[str, ...]:
        """Names of the fields that are not known."""
        return tuple(name for name, value in self.values() if value is None)

    def gaps(self) -> tuple[str, ...]:
        """The same for people: a section of which nothing is known stands as one."""
        missing = self.missing()
        found: list[str] = []
        for section in SECTIONS:
            lost = [name for name in missing if name.startswith(f"{section}.")]
            whole = len(lost) == len(dataclasses.fields(getattr(self, section)))
            found += [f"all of {section}"] if whole else lost
        return tuple(found)

    def differences(self, other: MeasurementContext) -> tuple[str, ...]:
        """Names of the fields in which two contexts differ, grounding left out."""
        theirs = dict(other.values())
        return tuple(
            name
            for name, value in self.values()
            if not name.startswith("grounding.") and value != theirs[name]
        )

    def shape(self) -> str:
        """The workload in one line, such as ``sharegpt, 1024 in / 256 out, c=1, warm latency``."""
        work, regime = self.workload, self.regime
        tokens = (
            f"{_count(work.input_tokens)} in / {_count(work.output_tokens)} out"
            if work.input_tokens is not None or work.output_tokens is not None
            else None
        )
        concurrency = None if work.concurrency is None else f"c={work.concurrency}"
        when = " ".join(part for part in (regime.state, regime.tier) if part) or None
        known = [p for p in (work.dataset, tokens, concurrency, when) if p]
        return ", ".join(known) or "shape not stated"


SECTIONS = (
    "identity",
    "parallelism",
    "serving",
    "workload",
    "regime",
    "stack",
    "grounding",
)

RIGORS = ("L1", "L2", "L3", "L4")


def exact(value: float) -> str:
    """A number as it was stated, never rounded to six digits.

    >>> exact(1048576.0), exact(12.1)
    ('1048576', '12.1')
    """
    return f"{value:.15g}"


def _count(value: float | None) -> str:
    return "?" if value is None else exact(value)
