"""Which chip a device is: by its name, and where that is ambiguous by its attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from solscope.model.finding import Absence
from solscope.model.report import Device
from solscope.model.roofline import CeilingSet, Chip

BANDWIDTH_TOLERANCE = 0.06
"""Attributes and data sheets differ by less for the same part; H100 variants by far more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The chip found, or why none was; ``mismatch`` says where device and table disagree."""

    chip: Chip | None
    absence: Absence | None = None
    mismatch: str | None = None


def identify(device: Device, ceilings: CeilingSet, *, wanted: str | None = None) -> Match:
    """The chip of a device. ``wanted`` is the user's own word: a key, or a part of one.

    Raises KeyError with the candidates where ``wanted`` names none or several.
    """
    if wanted is not None:
        return _with_mismatch(_wanted(wanted, ceilings), device)
    name = device.name or ""
    exact = [c for c in ceilings.chips.values() if c.match is not None and c.match.search(name)]
    family = [c for c in ceilings.chips.values() if c.family and _is_word(c.family, name)]
    candidates = exact or family
    if not candidates:
        return Match(chip=None, absence=_unknown(device, ceilings))
    fitting = [c for c in candidates if _fits(c, device)]
    if len(fitting) == 1:
        return _with_mismatch(fitting[0], device)
    if len(exact) == 1:
        # The full product name is there; the attributes tell of a partition or another bin.
        return _with_mismatch(exact[0], device)
    nearest = _nearest(fitting or candidates, device)
    if nearest is not None:
        return _with_mismatch(nearest, device)
    names = ", ".join(c.key for c in fitting or candidates)
    return Match(
        chip=None,
        absence=Absence(
            field="speed_of_light.datasheet",
            reason=f"{device.name!r} can be any of {names}: its attributes do not decide",
            remedy=f"say which with --chip, for example --chip {(fitting or candidates)[0].key}",
        ),
    )


def _wanted(wanted: str, ceilings: CeilingSet) -> Chip:
    if wanted in ceilings.chips:
        return ceilings.chips[wanted]
    word = wanted.lower().replace("-", "_").replace(" ", "_")
    first = [c for key, c in ceilings.chips.items() if key.partition("_")[0] == word]
    if len(first) == 1:
        return first[0]
    near = [c for key, c in ceilings.chips.items() if word in key or word in c.name.lower()]
    if len(near) == 1:
        return near[0]
    raise KeyError(", ".join(c.key for c in near or ceilings.chips.values()))


def _is_word(word: str, text: str) -> bool:
    parts = text.replace("-", " ").split()
    return word.lower() in (part.lower() for part in parts)


def _fits(chip: Chip, device: Device) -> bool:
    if chip.sm_count and device.sm_count and chip.sm_count != device.sm_count:
        return False
    capability = device.compute_capability
    if chip.compute_capability and capability and chip.compute_capability != capability:
        return False
    bandwidth = device.dram_bytes_per_s
    if chip.dram_bytes_per_s and bandwidth:
        return abs(bandwidth / chip.dram_bytes_per_s - 1) <= BANDWIDTH_TOLERANCE
    return True


def _nearest(candidates: Iterable[Chip], device: Device) -> Chip | None:
    """The only candidate whose clock is the device's, where all else is equal."""
    clock = device.max_sm_clock_khz
    if clock is None:
        return None
    same = [
        c
        for c in candidates
        if c.boost_clock_hz is not None and abs(c.boost_clock_hz / (clock * 1e3) - 1) < 0.005
    ]
    fitting = [c for c in same if _fits(c, device)]
    return fitting[0] if len(fitting) == 1 else None


def _unknown(device: Device, ceilings: CeilingSet) -> Absence:
    if device.name:
        return Absence(
            field="speed_of_light.datasheet",
            reason=f"no ceilings for {device.name!r}",
            remedy="lay your own over ours with --ceilings FILE, or choose a chip with --chip",
        )
    capability = device.compute_capability
    reason, remedy = "the report does not name its GPU", "say which with --chip"
    if capability is not None:
        reason += f" (compute capability {capability[0]}.{capability[1]})"
        same = [c.key for c in ceilings.chips.values() if c.compute_capability == capability]
        remedy += f": {', '.join(same)}" if same else ""
    remedy += ", or lay your own over ours with --ceilings FILE"
    return Absence(field="speed_of_light.datasheet", reason=reason, remedy=remedy)


def _with_mismatch(chip: Chip, device: Device) -> Match:
    notes: list[str] = []
    capability = device.compute_capability
    if chip.compute_capability and capability and chip.compute_capability != capability:
        theirs = ".".join(map(str, chip.compute_capability))
        ours = ".".join(map(str, capability))
        notes.append(f"the device has compute capability {ours}, {chip.key} {theirs}")
    if chip.sm_count and device.sm_count and chip.sm_count != device.sm_count:
        notes.append(f"the device has {device.sm_count} SMs, {chip.key} {chip.sm_count}")
    bandwidth = device.dram_bytes_per_s
    if bandwidth and chip.dram_bytes_per_s:
        ratio = bandwidth / chip.dram_bytes_per_s
        if abs(ratio - 1) > 0.03:
            notes.append(
                f"the device's attributes give {bandwidth / 1e9:.0f} GB/s, "
                f"{chip.key} {chip.dram_bytes_per_s / 1e9:.0f} GB/s"
            )
    return Match(chip=chip, mismatch="; ".join(notes) or None)
