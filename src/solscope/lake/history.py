"""The lake's rows as nouns: what ``next`` ranks with. Only committed rows, newest publishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from solscope.errors import LakeError
from solscope.lake import query
from solscope.lake.delta import Lake
from solscope.model.campaign import Frontier
from solscope.model.conditions import Conditions
from solscope.model.context import SECTIONS, MeasurementContext, Trials
from solscope.model.history import History, PastCampaign, PastKernel
from solscope.model.report import Dim3

_CAMPAIGNS = """
SELECT campaign, tier, strftime(published_at, '%Y-%m-%dT%H:%M:%SZ') AS published_at, frontier_json
FROM campaigns ORDER BY campaign
"""
_KERNELS = """
SELECT k.*, c.* EXCLUDE (hardware, month, publish_id, campaign, cell, context_json)
FROM kernels k LEFT JOIN contexts c USING (publish_id, cell)
WHERE k.kernel_time_ns > 0 AND k.launches > 0
ORDER BY k.campaign, k.cell, k.name
"""


def read(lake: Lake) -> History:
    """All campaigns of a lake with their levers, all kernels with how they were measured.

    Raises LakeError where the lake cannot be read, or a row is not as solscope writes it.
    """
    with query.connection(lake) as database:
        campaigns = tuple(_rows(query.answer(database, _CAMPAIGNS)))
        kernels = tuple(_rows(query.answer(database, _KERNELS)))
    return History(
        campaigns=tuple(_campaign(row) for row in campaigns),
        kernels=tuple(_kernel(row) for row in kernels),
    )


def _rows(answer: Any) -> Iterator[dict[str, Any]]:
    for row in answer.rows:
        yield dict(zip(answer.columns, row, strict=True))


def _campaign(row: Mapping[str, Any]) -> PastCampaign:
    text = row["frontier_json"]
    try:
        frontier = None if text is None else msgspec.json.decode(text, type=Frontier)
    except msgspec.MsgspecError as error:
        raise LakeError(
            f"frontier_json of campaign {row['campaign']} is not as solscope writes it: {error}",
            hint="publish that campaign again",
        ) from error
    return PastCampaign(
        slug=row["campaign"],
        tier=row["tier"],
        published_at=row["published_at"],
        frontier=frontier,
    )


def _kernel(row: Mapping[str, Any]) -> PastKernel:
    return PastKernel(
        campaign=row["campaign"],
        cell=row["cell"],
        captured_at=_instant(row["captured_at"]),
        name=row["name"],
        name_full=row["name_full"] or row["name"],
        conditions=Conditions(
            chip=row["hardware"],
            device_ordinal=row["device_ordinal"],
            tool=row["tool"],
            tool_version=row["tool_version"],
            clock_control=row["clock_control"],
            sm_clock_hz=row["sm_clock_hz"],
            dram_clock_hz=row["dram_clock_hz"],
            cache_control=row["cache_control"],
            replay_mode=row["replay_mode"],
            metric_count=row["metric_count"],
            metric_set=row["metric_set"],
            kind=row["kind"],
            grid=_extent(row["grid"]),
            block=_extent(row["block"]),
        ),
        context=_context(row),
        launches=row["launches"],
        ns_per_launch=row["kernel_time_ns"] / row["launches"],
        speed_of_light=row["speed_of_light_profiled"],
    )


def _instant(text: str | None) -> str | None:
    """In UTC, so that times sort; ``None`` for what is no time."""
    try:
        instant = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="seconds")


def _extent(text: str | None) -> Dim3 | None:
    if text is None:
        return None
    x, y, z = map(int, text.split("x"))
    return (x, y, z)


def _context(row: Mapping[str, Any]) -> MeasurementContext:
    empty = MeasurementContext()
    sections: dict[str, Any] = {}
    for section in SECTIONS:
        kind = type(getattr(empty, section))
        stated = {
            name: row[f"{section}_{name}"] for name in kind.__dataclass_fields__ if name != "trials"
        }
        if section == "grounding":
            stated["trials"] = _trials(row)
        sections[section] = kind(**stated)
    return MeasurementContext(**sections)


def _trials(row: Mapping[str, Any]) -> Trials | None:
    names = ("n", "mean", "std", "quantity", "unit")
    stated = {name: row[f"grounding_trials_{name}"] for name in names}
    return None if None in stated.values() else Trials(**stated)
