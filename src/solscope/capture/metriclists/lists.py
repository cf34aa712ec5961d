"""The metric list that answers a question on a chip for a data type. Levels are data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from solscope.errors import UsageError
from solscope.model.plan import Level, MetricList

STEM = "sm__ops_path_tensor_"
MAX_CHEAP_PASSES = 3
"""A tensor group that makes a list dearer than this is narrowed to FP32 accumulation."""

Cost = Callable[[Sequence[str]], int]


@cache
def _document() -> Mapping[str, Any]:
    import tomllib
    from importlib import resources

    raw = resources.files(__package__).joinpath("data/lists.toml").read_bytes()
    return tomllib.loads(raw.decode())


def dtypes() -> tuple[str, ...]:
    """The data types that the lists know, by their shortest names."""
    return tuple(_document()["dtype"])


def dtype_named(word: str) -> str:
    """The data type that a word means (``bfloat16``, ``nvfp4`` ...). Raises UsageError."""
    text = word.strip().lower().removeprefix("torch.")
    document = _document()
    if text in document["dtype"]:
        return text
    alias = document["dtype-alias"].get(text)
    if alias is not None:
        return str(alias)
    raise UsageError(
        f"no data type called {word!r}",
        where="--dtype",
        hint=f"one of {', '.join(document['dtype'])}",
    )


def section_set(level: Level) -> str | None:
    """The stock section set that a level stands for, if it is one."""
    value = _document()["level"][level.value].get("section_set")
    return None if value is None else str(value)


def for_level(
    level: Level,
    *,
    chip: str,
    dtype: str | None,
    base_names: Iterable[str],
    cost: Cost | None = None,
    tensor: Sequence[str] | None = None,
) -> MetricList:
    """The list of a level on a chip whose metrics are ``base_names`` (without suffix).

    ``tensor`` are the tensor metrics of ``dtype`` where a table has them; else they are chosen
    by ``cost``, which counts passes.
    """
    names = frozenset(base_names)
    answers, sections, wanted, wants_tensor = _collected(level)
    metrics = [m for m in [*wanted, *_stand_ins(names)] if base_of(m) in names or is_group(m)]
    if level is Level.FULL:
        metrics = []
    if wants_tensor and dtype is not None:
        chosen = tensor if tensor is not None else choose_tensor(dtype, names, cost)
        if not chosen:
            raise UsageError(
                f"{chip} counts no tensor work of {dtype}",
                where="--dtype",
                hint=f"this chip has {', '.join(dtypes_of(names)) or 'none'}",
            )
        metrics += [m for m in chosen if m not in metrics]
    left_out = _left_out(dtype, names, metrics) if wants_tensor else ()
    return MetricList(
        name=level.value if dtype is None or not wants_tensor else f"{level.value}/{dtype}",
        chip=chip,
        metrics=tuple(metrics),
        sections=tuple(sections),
        section_set=section_set(level),
        dtype=dtype,
        answers=tuple(answers),
        left_out=left_out,
    )


def _collected(level: Level) -> tuple[list[str], list[str], list[str], bool]:
    """(answers, sections, metrics, whether tensor work is asked) of a level and what it extends."""
    entry = _document()["level"][level.value]
    answers: list[str] = []
    sections: list[str] = []
    metrics: list[str] = []
    if "extends" in entry:
        answers, sections, metrics, _ = _collected(Level(entry["extends"]))
    answers = answers + list(entry.get("answers", ()))
    sections = sections + [s for s in entry.get("sections", ()) if s not in sections]
    metrics = metrics + list(entry.get("metrics", ()))
    return answers, sections, metrics, bool(entry.get("tensor"))


def _left_out(dtype: str | None, names: frozenset[str], metrics: Sequence[str]) -> tuple[str, ...]:
    """Tensor work that is not counted: all of it without a data type, else the dropped groups."""
    if dtype is None:
        has_tensor = any(name.startswith(STEM) for name in names)
        return ("tensor work of any type (name one with --dtype)",) if has_tensor else ()
    counted = {base_of(metric) for metric in metrics}
    return tuple(
        f"{dtype} tensor work that accumulates in FP16 ({group})"
        for group in _bare(dtype, names)
        if group not in counted
    )


def _bare(dtype: str, names: Iterable[str]) -> list[str]:
    """The top-level groups of a type, which count each operation once."""
    return [g for g in _groups(dtype, names) if "_op_" not in g and "sparsity" not in g]


def _stand_ins(names: frozenset[str]) -> list[str]:
    return [
        metric
        for entry in _document()["stand-in"]
        if entry["lacking"] not in names
        for metric in entry["metrics"]
    ]


def base_of(metric: str) -> str:
    """A metric's name without rollup and suffix.

    >>> base_of("dram__bytes.sum.peak_sustained")
    'dram__bytes'
    """
    return metric.partition(".")[0]


def is_group(metric: str) -> bool:
    """Whether the name stands for a group that ncu itself resolves."""
    return metric.startswith("group:")


def _source(base: str) -> str | None:
    """The source operand types that a tensor counter's name states: ``fp4_fp6_fp8``."""
    match = re.search(
        r"(?:^|_)src_([a-z0-9_]+?)(?:_dst_[a-z0-9]+)?(?:_sparsity_(?:on|off))?$", base
    )
    return None if match is None else match[1]


def _groups(dtype: str, names: Iterable[str]) -> list[str]:
    """Tensor counters of a type, all levels of the tree, without the real-time twins."""
    return sorted(
        base
        for base in names
        if base.startswith(STEM)
        and "realtime" not in base
        and dtype in (_source(base) or "").split("_")
    )


def dtypes_of(names: Iterable[str]) -> tuple[str, ...]:
    """The data types whose tensor work the chip counts."""
    present = tuple(names)
    return tuple(dtype for dtype in dtypes() if _groups(dtype, present))


def choose_tensor(dtype: str, names: frozenset[str], cost: Cost | None = None) -> tuple[str, ...]:
    """Counts of every top-level group of a type, and the dense peaks.

    Where all groups would make the roofline dearer than three counter passes: those that
    accumulate in FP32 alone.
    """
    others = [m for m in _collected(Level.ROOFLINE)[2] if base_of(m) in names]
    groups = _groups(dtype, names)
    bare = _bare(dtype, groups)
    dense = [g for g in groups if g.endswith("_sparsity_off")]
    candidates = [_with_peaks(bare, dense)]
    fp32 = [g for g in bare if g.endswith("_dst_fp32")]
    if fp32 and len(fp32) < len(bare):
        off = [g for g in dense if "_dst_fp32" in g]
        candidates.append(_with_peaks(fp32, off))
    if cost is None:
        return candidates[0]
    for candidate in candidates:
        if cost([*others, *candidate]) <= MAX_CHEAP_PASSES:
            return candidate
    return min(candidates, key=lambda candidate: cost([*others, *candidate]))


def _with_peaks(groups: Sequence[str], dense: Sequence[str]) -> tuple[str, ...]:
    # A type without the sparse pair (FP64, INT1, everything before Ampere) has a dense bare peak.
    peaks = dense or groups
    return tuple([f"{g}.sum" for g in groups] + [f"{p}.sum.peak_sustained" for p in peaks])
