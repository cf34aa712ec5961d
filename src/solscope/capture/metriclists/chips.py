"""Which chip is meant: by its own name, a product's, or a compute capability."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from solscope.errors import UsageError

_PREFIXES = re.compile(r"\b(nvidia|geforce|tesla|grace|hopper)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipName:
    """A chip as the profiling libraries name it. ``uncovered`` says why no pass is known."""

    name: str
    capability: str
    family: str | None = None
    products: tuple[str, ...] = ()
    uncovered: str | None = None


@cache
def known() -> Mapping[str, ChipName]:
    """Every chip of the packaged table, by name."""
    import tomllib
    from importlib import resources

    raw = resources.files(__package__).joinpath("data/chips.toml").read_bytes()
    document = tomllib.loads(raw.decode())
    return {
        name: ChipName(
            name=name,
            capability=entry["capability"],
            family=entry.get("family"),
            products=tuple(entry["products"]),
            uncovered=entry.get("uncovered"),
        )
        for name, entry in document.items()
    }


def identify(word: str) -> ChipName:
    """The chip that ``GH100``, ``H200``, ``NVIDIA H100 80GB HBM3``, ``sm_90``, ``9.0`` or
    ``h100_sxm_sm90`` names.

    Raises UsageError with the names that are known.
    """
    chips = known()
    exact = chips.get(word.strip().upper())
    if exact is not None:
        return exact
    text = _PREFIXES.sub(" ", re.sub(r"[_\-/]+", " ", word.lower())).strip()
    text = re.sub(r"\s+", " ", text)
    return _by_product(text) or _by_capability(text) or _unknown(word)


def _by_product(text: str) -> ChipName | None:
    """The longest product name that occurs in the text as whole words."""
    found = [
        (len(product), chip)
        for chip in known().values()
        for product in chip.products
        if re.search(rf"(?<![a-z0-9]){re.escape(product)}(?![a-z0-9])", text)
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _by_capability(text: str) -> ChipName | None:
    match = re.search(r"\b(?:sm|cc)? ?(\d{1,2})\.?(\d)a?\b", text)
    if match is None:
        return None
    capability = f"{match[1]}.{match[2]}"
    # The first of a capability is its data-centre part or the largest of the family.
    return next((chip for chip in known().values() if chip.capability == capability), None)


def _unknown(word: str) -> ChipName:
    chips = known()
    names = [*chips, *(product for chip in chips.values() for product in chip.products)]
    near = difflib.get_close_matches(word.lower(), [n.lower() for n in names], n=3, cutoff=0.5)
    shown = ", ".join(near) or ", ".join(chips)
    raise UsageError(
        f"no chip called {word!r}",
        where="--chip",
        hint=f"one of {shown}; product names (H200) and capabilities (9.0) do as well",
    )
