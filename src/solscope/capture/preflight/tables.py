"""Chips, and the releases of CUDA, driver and ncu that first knew them.

Toolkit to ncu: the releases shipped together (ncu truth, 7.1). Toolkit to chip: the toolkit's
first release that compiles for the compute capability. Toolkit to driver: kubernetes truth, 5.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipRow:
    """A chip: products by name, compute capability, the first toolkit and ncu for it."""

    chip: str
    capability: str
    products: re.Pattern[str]
    cuda: tuple[int, int]
    ncu: tuple[int, int]

    @property
    def is_blackwell(self) -> bool:
        """Compute capability 10 or newer."""
        return int(self.capability.split(".")[0]) >= 10

    @property
    def has_own_monitor_unit(self) -> bool:
        """Hopper and newer: DCGM's profiling fields can use a unit that ncu does not need."""
        return int(self.capability.split(".")[0]) >= 9


def _row(
    chip: str, capability: str, products: str, cuda: tuple[int, int], ncu: tuple[int, int]
) -> ChipRow:
    pattern = re.compile(products, re.IGNORECASE)
    return ChipRow(chip=chip, capability=capability, products=pattern, cuda=cuda, ncu=ncu)


CHIPS = (
    _row("GB110", "10.3", r"\bG?B300\b", (12, 9), (2025, 2)),
    _row("GB100", "10.0", r"\bG?B[12]00\b", (12, 8), (2025, 1)),
    _row("GB20B", "12.1", r"\bGB10\b", (12, 9), (2025, 2)),
    _row("GB202", "12.0", r"RTX.?PRO.?[4-6]\d00|RTX.?50[5-9]0", (12, 8), (2025, 1)),
    _row("GH100", "9.0", r"\bG?H(?:100|200|20|800)\b", (11, 8), (2022, 3)),
    _row("AD102", "8.9", r"\bL(?:4|40S?|20)\b|RTX.?40[5-9]0|RTX.?6000.?Ada", (11, 8), (2022, 3)),
    _row("GA102", "8.6", r"\bA(?:10G?|16|40|[2456]000)\b|RTX.?30[5-9]0", (11, 1), (2020, 2)),
    _row("GA100", "8.0", r"\bA(?:100|800|30)\b", (11, 0), (2020, 1)),
    _row("TU102", "7.5", r"\bT4\b|RTX.?20[5-9]0", (10, 0), (2019, 1)),
)
"""Newest first. GV100 and older are left out: current ncu releases do not list them."""

CUDA_DRIVER = ((13, 580), (12, 525), (11, 450))
"""CUDA major to the oldest driver branch that runs it (minor-version compatibility)."""

CUDA_NCU = {
    (11, 8): "2022.3", (12, 0): "2022.4", (12, 1): "2023.1", (12, 2): "2023.2", (12, 3): "2023.3",
    (12, 4): "2024.1", (12, 5): "2024.2", (12, 6): "2024.3", (12, 8): "2025.1", (12, 9): "2025.2",
    (13, 0): "2025.3", (13, 1): "2025.4", (13, 2): "2026.1", (13, 3): "2026.2", (13, 4): "2026.3",
}  # fmt: skip
"""CUDA toolkit to the ncu in it."""


def chip_of(product: str) -> ChipRow | None:
    """The chip of a product name, label or nvidia-smi spelling alike.

    >>> chip_of("NVIDIA-H100-80GB-HBM3").chip, chip_of("nvidia-a100-80gb").chip
    ('GH100', 'GA100')
    """
    words = product.replace("-", " ").replace("_", " ")
    return next((row for row in CHIPS if row.products.search(words)), None)


def chip_by_capability(capability: str | None) -> ChipRow | None:
    """The first chip of that compute capability."""
    return next((row for row in CHIPS if row.capability == capability), None)


def newest_cuda_of_driver(driver: str) -> int | None:
    """The CUDA major that a driver branch runs: 580.95.05 runs 13."""
    match = re.match(r"(\d+)", driver)
    if match is None:
        return None
    return next((cuda for cuda, branch in CUDA_DRIVER if int(match[1]) >= branch), None)
