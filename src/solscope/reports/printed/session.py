"""Attribute tables of the session page to a session and its devices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from solscope.model.report import Device, Session

TITLES = ("Launch Settings", "Session Info", "Processes", "Device Attributes")
_CREATED = "%Y-%b-%d %H:%M:%S"
_TOOL = "Nsight Compute Target"
_VERSION = re.compile(r"\d{4}\.\d+(?:\.\d+)*")
_MARKS = str.maketrans("", "", ",.' \u2019\u202f\u00a0")


def read_blocks(
    blocks: Mapping[str, Sequence[Sequence[str]]],
) -> tuple[Session, tuple[Device, ...], str | None]:
    """Session, devices and the tool's version, from rows of cells by the title above them."""
    facts = {row[0]: row[1] for row in blocks.get("Session Info", ())}
    settings = {row[0]: row[1] for row in blocks.get("Launch Settings", ())}
    version = _VERSION.search(facts.get(_TOOL, ""))
    addresses = facts.get("Target IP Addresses", "")
    session = Session(
        created_unix_s=_unix_time(facts.get("Created", "")),
        host_name=facts.get("Host Name"),
        ip_addresses=tuple(addresses.split(", ")) if addresses else (),
        os_name=facts.get("Target OS"),
        profiler_command_line=settings.get("Profiler Command Line", "").strip() or None,
        versions={
            name: facts[name]
            for name in ("CUDA Version", "Display Driver Version", "PerfWorks", _TOOL)
            if name in facts
        },
        clock_control=settings.get("Clock Control"),
        cache_control=settings.get("Cache Control"),
        replay_mode=settings.get("Replay Mode"),
    )
    devices = _devices(blocks.get("Device Attributes", ()))
    return session, devices, None if version is None else version.group()


def _unix_time(text: str) -> int | None:
    """ncu prints the clock of the machine that it ran on, without saying its zone."""
    try:
        return int(datetime.strptime(text.strip(), _CREATED).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        return None


def _devices(rows: Sequence[Sequence[str]]) -> tuple[Device, ...]:
    if not rows:
        return ()
    width = min(len(row) for row in rows)
    attributes = [{row[0]: row[i].strip() for row in rows[1:]} for i in range(1, width)]
    return tuple(_device(i, facts) for i, facts in enumerate(attributes))


def _device(ordinal: int, facts: Mapping[str, str]) -> Device:
    def number(name: str) -> int | None:
        text = facts.get(name, "").translate(_MARKS)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None

    major, minor = number("compute_capability_major"), number("compute_capability_minor")
    return Device(
        name=facts.get("display_name"),
        compute_capability=None if major is None or minor is None else (major, minor),
        sm_count=number("multiprocessor_count"),
        ordinal=ordinal,
        max_sm_clock_khz=number("clock_rate"),
        max_memory_clock_khz=number("memory_clock_rate"),
        memory_bus_width_bits=number("global_memory_bus_width"),
        max_warps_per_sm=number("max_warps_per_multiprocessor"),
        l2_bytes=number("l2_cache_size"),
        memory_bytes=number("total_memory"),
    )
