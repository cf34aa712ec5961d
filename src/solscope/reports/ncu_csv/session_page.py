"""The session page: several titled tables of two columns or more. It holds no launch."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime

from solscope.model.report import Device, Session
from solscope.reports.ncu_csv.layout import SESSION_TITLES

_TITLES = (*SESSION_TITLES, "Processes")
_CREATED = "%Y-%b-%d %H:%M:%S"
_TOOL = "Nsight Compute Target"
_VERSION = re.compile(r"\d{4}\.\d+(?:\.\d+)*")


def read_session(text: str) -> tuple[Session, tuple[Device, ...], str | None]:
    """Session, devices and the tool's version of a session page."""
    blocks: dict[str, list[list[str]]] = {}
    title = ""
    for row in csv.reader(io.StringIO(text, newline="")):
        if len(row) == 1 and row[0] in _TITLES:
            title = row[0]
        elif len(row) >= 2:
            blocks.setdefault(title, []).append(row)
    facts = {row[0]: row[1] for row in blocks.get("Session Info", ())}
    settings = {row[0]: row[1] for row in blocks.get("Launch Settings", ())}
    version = _VERSION.search(facts.get(_TOOL, ""))
    session = Session(
        created_unix_s=_unix_time(facts.get("Created", "")),
        host_name=facts.get("Host Name"),
        ip_addresses=tuple(facts["Target IP Addresses"].split(", "))
        if "Target IP Addresses" in facts
        else (),
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
    devices = _devices(blocks.get("Device Attributes", []))
    return session, devices, None if version is None else version.group()


def _unix_time(text: str) -> int | None:
    """ncu prints the time of the machine that it ran on, without saying its zone."""
    try:
        return int(datetime.strptime(text.strip(), _CREATED).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _devices(rows: list[list[str]]) -> tuple[Device, ...]:
    if not rows:
        return ()
    width = min(len(row) for row in rows)
    attributes = [{row[0]: row[i].strip() for row in rows[1:]} for i in range(1, width)]
    return tuple(_device(i, facts) for i, facts in enumerate(attributes))


def _device(ordinal: int, facts: dict[str, str]) -> Device:
    def number(name: str) -> int | None:
        text = facts.get(name, "").translate({ord(mark): None for mark in ",.' \u202f\u00a0"})
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
