"""``context.yaml``, field by field. What cannot be taken is said, not raised."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from solscope.evidence.campaign import text
from solscope.model.context import RIGORS, SECTIONS, MeasurementContext

_HINT = "see docs/reference/campaign-files.md for the sections of context.yaml"

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "regime.state": ("warm", "cold"),
    "regime.tier": ("latency", "throughput"),
    "grounding.sol_rigor": RIGORS,
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
        refused[name] = f"{_one_line(str(error))}: {value!r}"
        return None
    choices = _CHOICES.get(name)
    if choices is not None and taken not in choices:
        refused[name] = f"one of {', '.join(choices)}, not {value!r}"
        return None
    if isinstance(taken, str) and not taken.strip():
        refused[name] = "empty"
        return None
    return taken


@lru_cache(maxsize=16)
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in dataclasses.fields(kind)}


def _one_line(said: str) -> str:
    return " ".join(said.split())
