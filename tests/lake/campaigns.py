"""Campaign folders of known size and known sums, and publishing them with gates of the test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from solscope.flows import publish
from solscope.flows.world import Outcome, World
from solscope.lake.delta import Lake
from solscope.model.lake import Gap, Judgement, LakeRows

PROVEN = Judgement(tier="VERDICT")
OPEN = Judgement(tier="DRAFT", gaps=(Gap(gate="trials", reason="1 trial; 3 are needed"),))
NOW = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)


def kernel(name: str, **measured: Any) -> dict[str, Any]:
    """An entry of ``kernels`` with the version 1 keys, ``null`` where not given."""
    keys = [
        "name_full",
        "category",
        "kernel_time_ns",
        "dram_bytes_total",
        "sm_flops_total",
        "tensor_flops_total",
        "arithmetic_intensity_flops_per_byte",
        "achieved_dram_pct_peak",
        "achieved_sm_pct_peak",
        "achieved_occupancy_pct",
        "block_limit_factor",
        "achieved_tflops",
    ]
    return {"name": name, **dict.fromkeys(keys), **measured}


def launch(name: str, **measured: Any) -> dict[str, Any]:
    """An entry of ``launches``."""
    return {"name": name, "grid": [132, 1, 1], "block": [128, 1, 1], **measured}


def cell(
    folder: Path,
    name: str,
    kernels: list[dict[str, Any]],
    launches: list[dict[str, Any]] | None = None,
    *,
    hardware: str | None = "h100_sm90",
    captured_at: str | None = "2026-10-12T09:00:00+00:00",
    context: dict[str, Any] | None = None,
    reports: Sequence[str] = (),
) -> None:
    """Write a cell below the campaign's folder. ``reports``: digests of what it was read from."""
    place = folder / "cells" / name
    place.mkdir(parents=True, exist_ok=True)
    document = {
        "schema_version": 1,
        "captured_sources": ["ncu"],
        "hw_key": hardware,
        "kernels": kernels,
        "captured_at": captured_at,
    }
    read = [{"provenance": {"path": "x.ncu-rep", "sha256": one}} for one in reports]
    if read:
        document["solscope"] = {"analysis": {"reports": read}}
    (place / "ncu_kernels.json").write_text(json.dumps(document))
    if launches is not None:
        file = {"schema": "solscope.launches/1", "launches": launches}
        (place / "launches.json").write_text(json.dumps(file))
    if context is not None:
        (place / "context.yaml").write_text(json.dumps(context))


def campaign(root: Path, slug: str, *, launches: int = 20, salt: int = 0) -> Path:
    """A campaign of two kernels in one cell. Every launch takes 1000 + ``salt`` ns."""
    folder = root / slug
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(f"name: Campaign {slug}\nkrhpa_exempt_reason: none\n")
    each = [launch("gemm" if i % 2 else "attn", duration_ns=1000 + salt) for i in range(launches)]
    sums = [
        kernel(
            name,
            kernel_time_ns=(1000 + salt) * count,
            launches=count,
            speed_of_light_profiled=0.5,
        )
        for name, count in (("attn", (launches + 1) // 2), ("gemm", launches // 2))
    ]
    cell(folder, "c1", sums, each)
    return folder


def world() -> World:
    """A world whose clock stands still."""
    return World(now=lambda: NOW)


def put(
    campaigns: Path,
    slug: str,
    lake: Path | str,
    *,
    judgement: Judgement = PROVEN,
    **options: Any,
) -> Outcome:
    """Publish with a given judgement; ``yes`` unless said otherwise."""
    request = publish.PublishRequest(
        slug=slug, campaigns=str(campaigns), lake=str(lake), **{"yes": True, **options}
    )
    return publish.publish(request, world(), judge=lambda _request, _world: judgement)


def rows_of(campaigns: Path, slug: str) -> LakeRows:
    """The rows that publishing a campaign makes."""
    from solscope.lake import rows

    source = publish.read(campaigns, slug)
    return rows.build(source, PROVEN, strict=True, tool_version="0.1.0", published_at=NOW)


def lake_at(place: Path | str) -> Lake:
    """A lake in a folder."""
    return Lake(location=str(place))
