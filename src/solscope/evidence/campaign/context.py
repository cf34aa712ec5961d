"""``context.yaml``, field by field. What cannot be taken is said, not raised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from solscope.evidence.campaign import text
from solscope.model.campaign import is_nothing, is_open
from solscope.model.context import RIGORS, SECTIONS, MeasurementContext, Trials

_HINT = "see docs/reference/campaign-files.md for the sections of context.yaml"

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "regime.state": ("warm", "cold"),
    "regime.tier": ("latency", "throughput"),
    "grounding.sol_rigor": RIGORS,
}


# What a number can be at all; every other number counts things that there is at least one of.
_RANGES: Mapping[str, tuple[float, float]] = {
    "serving.gpu_memory_utilization": (1e-3, 1.0),
    "workload.output_tokens": (0.0, math.inf),
}
# Where ``none`` is no answer; of a strategy, a quantization or an image it is one.
_NEVER_NONE = frozenset(
    ("identity.model", "identity.hardware", "grounding.ceiling_key", "grounding.baseline")
)
_KINDS: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}

# The flat names that a capture writes on its own, before people add the rest.
_OF_A_CAPTURE: Mapping[str, str] = {
    "model": "identity.model",
    "tensor_parallel": "parallelism.tensor",
    "isl_tokens": "workload.input_tokens",
    "osl_tokens": "workload.output_tokens",
    "concurrency": "workload.concurrency",
    "engine": "stack.engine",
    "engine_version": "stack.version",
    "image": "stack.image",
}
# Facts of the capture that a report states itself, or that no number here depends on by name.
_ASIDE = frozenset(
    (
        "schema",
        "gpu",
        "gpu_count",
        "driver_version",
        "cuda_version",
        "data_type",
        "ncu_version",
        "clock_control",
        "cache_control",
        "replay_mode",
        "extra",
    )
)


def read(path: Path) -> MeasurementContext:
    """The context that a file states. Raises UsageError, ReportError for the file as a whole."""
    return parse(text.yaml_mapping(path, hint=_HINT))


def parse(document: Mapping[str, Any]) -> MeasurementContext:
    """The same from a mapping. A value of the wrong kind is refused with the reason."""
    refused: dict[str, str] = {}
    parts: dict[str, Any] = {}
    stated = _by_section(document)
    _refuse_contradictions(document, stated, refused)
    for section in SECTIONS:
        parts[section] = _section(section, stated.get(section), refused)
    for name in document:
        if name not in SECTIONS and name not in _OF_A_CAPTURE and name not in _ASIDE:
            refused[name] = f"no section of a context; sections are {', '.join(SECTIONS)}"
    return MeasurementContext(**parts, refused=refused)


def _by_section(document: Mapping[str, Any]) -> dict[str, Any]:
    """The sections, a capture's own flat names laid under what they say."""
    stated: dict[str, Any] = {}
    for flat, name in _OF_A_CAPTURE.items():
        value = document.get(flat)
        if value is not None:
            section, _, key = name.partition(".")
            stated.setdefault(section, {})[key] = value
    for section in SECTIONS:
        given = document.get(section)
        if isinstance(given, dict):
            stated[section] = {**stated.get(section, {}), **given}
        elif given is not None:
            stated[section] = given
    return stated


def _refuse_contradictions(
    document: Mapping[str, Any], stated: dict[str, Any], refused: dict[str, str]
) -> None:
    """A number that the capture saw cannot be stated otherwise; a name may be, by another one."""
    for flat, name in _OF_A_CAPTURE.items():
        section, _, key = name.partition(".")
        seen, given = document.get(flat), stated.get(section)
        if not isinstance(seen, int | float) or not isinstance(given, dict):
            continue
        said = given.get(key)
        if said is not None and said != seen:
            refused[name] = f"{_shown(said)} is stated, and the capture says {_shown(seen)}"
            stated[section] = {k: value for k, value in given.items() if k != key}


def _section(section: str, given: object, refused: dict[str, str]) -> Any:
    kind = get_type_hints(MeasurementContext)[section]
    if given is None:
        return kind()
    if not isinstance(given, dict):
        refused[section] = "not a mapping"
        return kind()
    hints = _hints(kind)
    taken: dict[str, Any] = {}
    for key, value in given.items():
        name = f"{section}.{key}"
        if key not in hints:
            refused[name] = f"no field of {section}; fields are {', '.join(hints)}"
        elif value is not None:
            value = _value(name, value, hints[key], refused)
            taken[key] = value
    return kind(**taken)


def _value(name: str, value: object, kind: Any, refused: dict[str, str]) -> Any:
    import msgspec

    try:
        taken = msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        refused[name] = _of_another_kind(value, kind) or f"{_one_line(str(error))}: {value!r}"
        return None
    why = _why_not(name, taken)
    if why is not None:
        refused[name] = why
        return None
    return taken


def _why_not(name: str, taken: object) -> str | None:
    """Why a value of the right kind cannot be what was meant."""
    choices = _CHOICES.get(name)
    if choices is not None and taken not in choices:
        return f"one of {', '.join(choices)}, not {taken!r}"
    if isinstance(taken, str):
        return _why_no_text(name, taken)
    if isinstance(taken, Trials):
        return _why_no_trials(taken)
    if isinstance(taken, bool) or not isinstance(taken, int | float):
        return None
    low, high = _RANGES.get(name, (1.0, math.inf))
    if math.isfinite(taken) and low <= taken <= high:
        return None
    span = f"{low:g} or more" if high == math.inf else f"above 0, up to {high:g}"
    return f"{span}, not {taken:g}"


def _why_no_text(name: str, said: str) -> str | None:
    if not said.strip():
        return "empty"
    says_nothing = is_nothing(said) if name in _NEVER_NONE else is_open(said)
    return f"{said!r} says nothing" if says_nothing else None


def _why_no_trials(trials: Trials) -> str | None:
    if trials.n < 1:
        return f"n is {trials.n}, no number of trials"
    if not (math.isfinite(trials.mean) and math.isfinite(trials.std)) or trials.std < 0:
        return f"{trials.mean:g} ± {trials.std:g} is no mean and spread"
    if trials.mean <= 0:
        return f"a mean of {trials.mean:g} was not measured"
    blank = [name for name in ("quantity", "unit") if is_nothing(getattr(trials, name))]
    return f"{' and '.join(blank)} not stated" if blank else None


def _of_another_kind(value: object, kind: Any) -> str | None:
    """What a plain field expects, in words; YAML turns bare words, dates and versions around."""
    expected = next((words for plain, words in _KINDS.items() if kind == (plain | None)), None)
    if expected is None:
        return None
    quote = expected == "text" and not isinstance(value, dict | list)
    advice = ": put it in quotes" if quote else ""
    return f"{expected} is expected, and this is {_shown(value)}{advice}"


def _shown(value: object) -> str:
    """A value as YAML read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return repr(value) if isinstance(value, str) else str(value)


@lru_cache(maxsize=16)
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in dataclasses.fields(kind)}


def _one_line(said: str) -> str:
    return " ".join(said.split())
