"""A campaign's files, as plain data, to the rows of the lake."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import msgspec

from solscope.errors import UsageError
from solscope.lake import schema
from solscope.model.context import SECTIONS, MeasurementContext
from solscope.model.lake import CampaignSource, CellSource, Judgement, LakeRows, Row

UNKNOWN = "unknown"
Number = int | float


class _Kernel(msgspec.Struct, kw_only=True):
    """One entry of ``kernels`` in ``ncu_kernels.json``, version 1 and what solscope adds."""

    name: str
    name_full: str | None = None
    category: str | None = None
    launches: int | None = None
    kernel_time_ns: Number | None = None
    dram_bytes_total: Number | None = None
    sm_flops_total: Number | None = None
    tensor_flops_total: Number | None = None
    arithmetic_intensity_flops_per_byte: Number | None = None
    achieved_dram_pct_peak: Number | None = None
    achieved_sm_pct_peak: Number | None = None
    achieved_occupancy_pct: Number | None = None
    block_limit_factor: str | None = None
    achieved_tflops: Number | None = None
    time_share: Number | None = None
    bound: str | None = None
    is_at_roof: bool | None = None
    tensor_engagement: str | None = None
    speed_of_light_profiled: Number | None = None
    speed_of_light_profiled_ceiling: str | None = None
    speed_of_light_datasheet: Number | None = None
    speed_of_light_datasheet_ceiling_key: str | None = None
    registers_per_thread: int | None = None
    smem_per_block_bytes: Number | None = None
    block_limit_factors: list[str] | None = None
    absent_because: dict[str, str] | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    kind: str | None = None
    device_ordinal: int | None = None
    tool: str | None = None
    tool_version: str | None = None
    clock_control: str | None = None
    sm_clock_hz: Number | None = None
    dram_clock_hz: Number | None = None
    cache_control: str | None = None
    replay_mode: str | None = None
    metric_count: int | None = None
    metric_set: str | None = None


class _Launch(msgspec.Struct, kw_only=True):
    """One entry of ``launches`` in ``launches.json``."""

    name: str
    name_full: str | None = None
    category: str | None = None
    report: str | None = None
    device: int | None = None
    stream: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    duration_ns: Number | None = None
    dram_bytes: Number | None = None
    flop_count: Number | None = None
    tensor_flop_count: Number | None = None
    achieved_dram_pct_peak: Number | None = None
    achieved_sm_pct_peak: Number | None = None
    achieved_occupancy_pct: Number | None = None
    registers_per_thread: int | None = None
    smem_per_block_bytes: Number | None = None
    block_limit_factor: str | None = None


class _Provenance(msgspec.Struct, kw_only=True):
    """A report file: its name, its digest, its size."""

    path: str
    sha256: str
    size_bytes: int | None = None


class _Report(msgspec.Struct, kw_only=True):
    provenance: _Provenance


class _Analysis(msgspec.Struct, kw_only=True):
    reports: list[_Report] = []


class _Ours(msgspec.Struct, kw_only=True):
    """What solscope adds to ``ncu_kernels.json``, as far as a row needs it."""

    added_at: str | None = None
    analysis: _Analysis | None = None


class _Cell(msgspec.Struct, kw_only=True):
    """``ncu_kernels.json``. ``hw_key`` is a key of the ceilings."""

    schema_version: Literal[1]
    kernels: list[_Kernel]
    hw_key: str | None = None
    captured_at: str | None = None
    solscope: _Ours | None = None


class _Launches(msgspec.Struct, kw_only=True):
    """``launches.json``: every launch that the cell's kernels sum."""

    schema: Literal["solscope.launches/1"]
    captured_at: str | None = None
    launches: list[_Launch]


_Wire = TypeVar("_Wire", _Cell, _Launches)
# A column `section_field` holds the field `section.field` of context.yaml.
_CONTEXT_PATHS = {
    column.name: (
        ("grounding", "trials", column.name.removeprefix("grounding_trials_"))
        if column.name.startswith("grounding_trials_")
        else tuple(column.name.split("_", 1))
    )
    for column in schema.CONTEXTS
    if column.name.startswith(tuple(f"{section}_" for section in SECTIONS))
}
_KERNEL_KEYS = frozenset(_Kernel.__struct_fields__)
_LAUNCH_KEYS = frozenset(_Launch.__struct_fields__)


def build(
    source: CampaignSource,
    judgement: Judgement,
    *,
    strict: bool,
    tool_version: str,
    published_at: datetime,
) -> LakeRows:
    """All rows of one publish.

    ``published_at`` and ``tool_version`` are no part of the digest, so that the same campaign
    published again is known as the same. Raises UsageError for a file that has not the shape of
    the contract, naming the JSON path.
    """
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in schema.TABLES}
    keys = []
    for cell in source.cells:
        wire = _convert(cell.document, _Cell, cell.cell, "ncu_kernels.json")
        key = _key(source.slug, cell, wire)
        keys.append(key)
        tables["kernels"] += _kernels(key, cell, wire)
        tables["kernel_launches"] += _launches(key, cell, wire)
        tables["contexts"] += _contexts(key, cell)
        tables["receipts"] += _receipts(key, cell, wire, source)
    tables[schema.COMMITS] = [_campaign(source, keys, judgement, strict, tables)]
    publish_id = _digest(tables)
    for rows in tables.values():
        for row in rows:
            row["publish_id"] = publish_id
    tables[schema.COMMITS][0].update(tool_version=tool_version, published_at=published_at)
    return LakeRows(
        campaign=source.slug,
        publish_id=publish_id,
        tables={name: tuple(rows) for name, rows in tables.items()},
    )


def _convert(document: Mapping[str, Any], kind: type[_Wire], cell: str, file: str) -> _Wire:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise UsageError(
            str(error),
            where=f"cells/{cell}/{file}",
            hint="make it anew with `solscope campaign add`",
        ) from error


def _captured_at(cell: CellSource, wire: _Cell) -> str | None:
    """When the capture began, as far as a file of the cell says so; else when it was imported."""
    said = (
        wire.captured_at,
        _at(cell.launches, "captured_at"),
        wire.solscope.added_at if wire.solscope else None,
    )
    return next((_in_utc(instant) for instant in said if instant is not None), None)


def _in_utc(said: Any) -> str | None:
    """An instant in UTC, so that captures of two time zones sort and fall into one month."""
    try:
        instant = datetime.fromisoformat(str(said))
    except ValueError:
        return _text(said)
    return _text(said) if instant.tzinfo is None else instant.astimezone(UTC).isoformat()


def _key(slug: str, cell: CellSource, wire: _Cell) -> dict[str, Any]:
    return {
        "hardware": wire.hw_key or UNKNOWN,
        "month": _month(_captured_at(cell, wire)),
        "campaign": slug,
        "cell": cell.cell,
    }


def _month(captured: object) -> str:
    try:
        return f"{datetime.fromisoformat(str(captured)):%Y-%m}"
    except ValueError:
        return UNKNOWN


def _kernels(key: Row, cell: CellSource, wire: _Cell) -> Iterator[dict[str, Any]]:
    captured = _captured_at(cell, wire)
    for kernel, raw in zip(wire.kernels, cell.document["kernels"], strict=True):
        row = {**key, **msgspec.structs.asdict(kernel), "more_json": _more(raw, _KERNEL_KEYS)}
        row["block_limit_factors_json"] = _text(row.pop("block_limit_factors"))
        row["absent_because_json"] = _text(row.pop("absent_because"))
        row["grid"], row["block"] = _extent(kernel.grid), _extent(kernel.block)
        row["captured_at"] = captured
        yield row


def _launches(key: Row, cell: CellSource, kernels: _Cell) -> Iterator[dict[str, Any]]:
    if cell.launches is None:
        return
    wire = _convert(cell.launches, _Launches, cell.cell, "launches.json")
    _refuse_others(wire.launches, kernels.kernels, cell.cell)
    pairs = zip(wire.launches, cell.launches["launches"], strict=True)
    for index, (launch, raw) in enumerate(pairs):
        row = {**key, **msgspec.structs.asdict(launch), "launch_index": index}
        row["grid"], row["block"] = _extent(launch.grid), _extent(launch.block)
        row["more_json"] = _more(raw, _LAUNCH_KEYS)
        yield row


def _refuse_others(launches: list[_Launch], kernels: list[_Kernel], cell: str) -> None:
    """Raises UsageError where the launches are not those that the kernels sum.

    An import that was ended between two of its files leaves such a pair, a copied file too.
    """
    if any(kernel.launches is None for kernel in kernels):
        return  # another tool's file, which does not say how many it sums
    summed = sum(kernel.launches or 0 for kernel in kernels)
    took = math.fsum(kernel.kernel_time_ns or 0.0 for kernel in kernels)
    counted = math.fsum(launch.duration_ns or 0.0 for launch in launches)
    is_timed = all(kernel.kernel_time_ns is not None for kernel in kernels)
    if len(launches) == summed and (not is_timed or math.isclose(took, counted, rel_tol=1e-9)):
        return
    raise UsageError(
        f"{len(launches)} launches of {counted:.15g} ns, and ncu_kernels.json sums {summed} of "
        f"{took:.15g} ns: the two files are not of one import",
        where=f"cells/{cell}/launches.json",
        hint="import the bundle again: solscope campaign add SLUG --cell CELL BUNDLE",
    )


def _extent(extent: tuple[int, int, int] | None) -> str | None:
    return None if extent is None else "x".join(map(str, extent))


def _more(raw: Mapping[str, Any], known: frozenset[str]) -> str | None:
    more = {name: value for name, value in raw.items() if name not in known}
    return _json(more) if more else None


def _contexts(key: Row, cell: CellSource) -> Iterator[dict[str, Any]]:
    context = cell.context
    if context is None:
        return
    yield {
        **key,
        # What a person wrote may be of another kind than the column: it is then absent from it,
        # and stands in context_json as it was written.
        **{column: _of(cell.known, *path) for column, path in _CONTEXT_PATHS.items()},
        "context_json": _json(context),
    }


def _of(known: MeasurementContext, section: str, *names: str) -> Any:
    value = getattr(known, section)
    for name in names:
        value = None if value is None else getattr(value, name)
    return value


def _receipts(
    key: Row, cell: CellSource, wire: _Cell, source: CampaignSource
) -> Iterator[dict[str, Any]]:
    index = 0
    for index, receipt in enumerate(cell.receipts, 1):
        yield {
            **key,
            "receipt_index": index - 1,
            "step": str(receipt.get("step", UNKNOWN)),
            "began_at": _text(receipt.get("begun", receipt.get("began_at"))),
            "ended_at": _text(receipt.get("ended", receipt.get("ended_at"))),
            "exit_status": _integer(receipt.get("exit_status")),
            "receipt_json": _json(receipt),
        }
    own = [
        ("file", file.path, file.sha256, file.size_bytes)
        for file in source.files
        if file.path.startswith(f"cells/{cell.cell}/")
    ]
    read = [("report", one.path, one.sha256, one.size_bytes) for one in _reports(wire)]
    for position, (step, path, sha256, size) in enumerate((*own, *read), index):
        yield {
            **key,
            "receipt_index": position,
            "step": step,
            "artifact": path,
            "sha256": sha256,
            "size_bytes": size,
        }


def _reports(wire: _Cell) -> Iterator[_Provenance]:
    """The reports that a cell was read from: none where another tool wrote it."""
    analysis = None if wire.solscope is None else wire.solscope.analysis
    for report in () if analysis is None else analysis.reports:
        yield report.provenance


def _campaign(
    source: CampaignSource,
    keys: list[dict[str, Any]],
    judgement: Judgement,
    strict: bool,
    tables: Mapping[str, list[dict[str, Any]]],
) -> dict[str, Any]:
    gaps = [{"gate": gap.gate, "reason": gap.reason} for gap in judgement.gaps]
    verdict = judgement.document
    return {
        "hardware": "+".join(sorted({key["hardware"] for key in keys})) or UNKNOWN,
        "month": max((key["month"] for key in keys if key["month"] != UNKNOWN), default=UNKNOWN),
        "campaign": source.slug,
        "name": _text(source.config.get("name")),
        "description": _text(source.config.get("description")),
        "tier": "DRAFT" if gaps else judgement.tier,
        "strict": strict,
        "gap_count": len(gaps),
        "gaps_json": _json(gaps),
        "sol_rigor": _text(_at(verdict, "sol_rigor")),
        "next_lever": _text(_at(source.config, "next_lever", "what")),
        "cell_count": len(source.cells),
        "kernel_count": len(tables["kernels"]),
        "kernel_launch_count": len(tables["kernel_launches"]),
        "config_json": _json(source.config),
        "verdict_json": None if verdict is None else _json(verdict),
        "schema_version": schema.VERSION,
        "frontier_json": None if judgement.frontier is None else _json(judgement.frontier),
    }


def _digest(tables: Mapping[str, list[dict[str, Any]]]) -> str:
    # 32 hex digits are 128 bits: no two publishes of a lake will ever share them by chance.
    digest = hashlib.sha256()
    for name in sorted(tables):
        digest.update(msgspec.json.encode([name, tables[name]], order="deterministic"))
    return digest.hexdigest()[:32]


def _json(value: object) -> str:
    # YAML knows dates, and names that are no text, which JSON does not; they become text.
    return msgspec.json.encode(_named(value), order="deterministic").decode()


def _named(value: object) -> object:
    if isinstance(value, Mapping):
        return {_name(key): _named(inner) for key, inner in value.items()}
    return [_named(inner) for inner in value] if isinstance(value, list) else value


def _name(key: object) -> str:
    return key if isinstance(key, str) else msgspec.json.encode(key).decode().strip('"')


def _at(document: Mapping[str, Any] | None, *path: str) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return _json(value)


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
