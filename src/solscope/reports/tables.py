"""Packaged data in, nouns out: ceilings and kernel-name patterns."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from solscope.errors import ReportError, UsageError
from solscope.model import units
from solscope.model.kernel import DtypePattern, FamilyPattern
from solscope.model.roofline import Ceiling, CeilingSet, Chip

PACKAGED_CEILINGS = "sol-ceilings.yaml"
PACKAGED_FAMILIES = "kernel-families.toml"
_RESERVED = ("schema", "chip_identity", "category_ceiling_map")
_MEMORY_BANDWIDTH = re.compile(r"^(hbm|gddr|lpddr|ddr)\w*_tbps$")


class _CeilingRow(msgspec.Struct, forbid_unknown_fields=True):
    value: float
    units: str
    source: str
    notes: str | None = None
    clock_basis: str | None = None
    clock_mhz: float | None = None
    confidence: str | None = None


class _Identity(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    match: str | None = None
    family: str | None = None
    compute_capability: str | None = None
    sm_count: int | None = None
    sm_count_confidence: str | None = None
    boost_clock_mhz: float | None = None
    dense_ops_per_clk_per_sm: dict[str, float] = {}


class _FamilyRow(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    match: str
    family: str
    category: str
    role: str
    collective: bool = False


class _DtypeRow(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    match: str


class _Families(msgspec.Struct, forbid_unknown_fields=True):
    family: list[_FamilyRow]
    dtype: list[_DtypeRow]


def _packaged(name: str) -> bytes:
    return resources.files("solscope.reports").joinpath("data", name).read_bytes()


def _lowered(pattern: str) -> re.Pattern[str]:
    """A pattern for lower-cased names: several times faster than one that ignores case.

    Letters after a backslash keep their case, because it carries meaning.
    """
    return re.compile(re.sub(r"\\.|[A-Z]", lambda m: _lower(m.group()), pattern))


def _lower(text: str) -> str:
    return text if text.startswith("\\") else text.lower()


@lru_cache(maxsize=1)
def family_patterns() -> tuple[FamilyPattern, ...]:
    """The packaged kernel-name patterns, in the order that decides."""
    return tuple(
        FamilyPattern(
            id=row.id,
            family=row.family,
            category=row.category,
            role=row.role,
            match=_lowered(row.match),
            is_collective=row.collective,
        )
        for row in _families().family
    )


@lru_cache(maxsize=1)
def dtype_patterns() -> tuple[DtypePattern, ...]:
    """The packaged data-type patterns, in the order that decides."""
    return tuple(
        DtypePattern(dtype=row.dtype, match=_lowered(row.match)) for row in _families().dtype
    )


@lru_cache(maxsize=1)
def _families() -> _Families:
    return msgspec.toml.decode(_packaged(PACKAGED_FAMILIES), type=_Families)


def ceilings(overlay_path: str | None = None) -> CeilingSet:
    """The packaged ceilings, with the user's own file laid over them.

    A chip or a metric of the overlay replaces the packaged one of the same name; the rest
    stays. Raises UsageError where the overlay does not exist, ReportError where it is not a
    ceilings file, naming the key.
    """
    base = _packaged_ceilings()
    if overlay_path is None:
        return base
    return _laid_over(base, _yaml(_overlay_bytes(overlay_path), overlay_path), overlay_path)


@lru_cache(maxsize=1)
def _packaged_ceilings() -> CeilingSet:
    document = _yaml(_packaged(PACKAGED_CEILINGS), PACKAGED_CEILINGS)
    return _laid_over(CeilingSet(chips={}), document, PACKAGED_CEILINGS)


def _laid_over(base: CeilingSet, document: Mapping[str, Any], where: str) -> CeilingSet:
    chips = dict(base.chips)
    identities = _mapping(document.get("chip_identity", {}), "chip_identity", where)
    for key in dict.fromkeys([*document, *identities]):
        if key not in _RESERVED:
            metrics = _mapping(document.get(key, {}), key, where)
            chips[key] = _chip(key, metrics, identities.get(key), chips.get(key), where)
    added = _mapping(document.get("category_ceiling_map", {}), "category_ceiling_map", where)
    return CeilingSet(
        chips=chips,
        category_ceiling_map={**base.category_ceiling_map, **added},
        sources=(*base.sources, where),
    )


def _overlay_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(
            f"the ceilings file cannot be read: {error.strerror}",
            where=path,
            hint="give a YAML file after the pattern of the packaged sol-ceilings.yaml",
        ) from error


def _yaml(raw: bytes, where: str) -> Mapping[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(raw, Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ReportError(f"not YAML: {error}", where=where, hint="mend the file") from error
    return _mapping(document, "the file", where)


def _mapping(value: object, what: str, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ReportError(
            f"{what} is not a mapping of names",
            where=where,
            hint="a ceilings file maps <chip> to <metric>: {value, units, source}",
        )
    return value


def _chip(
    key: str,
    metrics: Mapping[str, Any],
    raw_identity: object,
    base: Chip | None,
    where: str,
) -> Chip:
    merged = dict(base.ceilings) if base is not None else {}
    for name, raw in metrics.items():
        merged[name] = _ceiling(f"{key}.{name}", raw, where)
    identity = _identity(key, raw_identity, where)
    bandwidth = next((c.peak for n, c in merged.items() if _MEMORY_BANDWIDTH.match(n)), None)
    memory = merged.get("memory_gb")
    if identity is None and base is not None:
        return dataclasses.replace(base, ceilings=merged, dram_bytes_per_s=bandwidth)
    return Chip(
        key=key,
        name=identity.name if identity is not None else key,
        ceilings=merged,
        compute_capability=_capability(identity),
        sm_count=identity.sm_count if identity is not None else None,
        match=_regex(identity.match, key, where) if identity is not None else None,
        family=identity.family if identity is not None else None,
        boost_clock_hz=_hz(identity.boost_clock_mhz) if identity is not None else None,
        dense_ops_per_clk_per_sm=identity.dense_ops_per_clk_per_sm if identity is not None else {},
        dram_bytes_per_s=bandwidth,
        memory_bytes=memory.peak if memory is not None else None,
    )


def _hz(mhz: float | None) -> float | None:
    return None if mhz is None else mhz * 1e6


def _capability(identity: _Identity | None) -> tuple[int, int] | None:
    if identity is None or identity.compute_capability is None:
        return None
    major, _, minor = identity.compute_capability.partition(".")
    return (int(major), int(minor))


def _regex(pattern: str | None, key: str, where: str) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ReportError(
            f"chip_identity.{key}.match is not a regular expression: {error}", where=where
        ) from error


def _identity(key: str, raw: object, where: str) -> _Identity | None:
    if raw is None:
        return None
    try:
        return msgspec.convert(raw, type=_Identity)
    except msgspec.ValidationError as error:
        raise ReportError(f"chip_identity.{key}: {error}", where=where) from error


def _ceiling(key_path: str, raw: object, where: str) -> Ceiling:
    try:
        row = msgspec.convert(raw, type=_CeilingRow)
    except msgspec.ValidationError as error:
        raise ReportError(
            f"{key_path}: {error}",
            where=where,
            hint="write {value: NUMBER, units: UNIT, source: WHERE FROM}",
        ) from error
    if row.value <= 0:
        raise ReportError(f"{key_path}: value {row.value} is not above zero", where=where)
    factor = units.ceiling_factor(row.units, where=f"{where}: {key_path}")
    return Ceiling(
        key=key_path,
        value=row.value,
        units=row.units,
        peak=row.value * factor,
        source=row.source,
        clock_basis=row.clock_basis,
        clock_hz=_hz(row.clock_mhz),
        confidence=row.confidence,
        notes=row.notes,
    )
