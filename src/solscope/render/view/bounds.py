"""What binds a kernel, as a word, a sentence, a colour and a shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStyle:
    """How one group of bounds looks everywhere.

    ``colour`` has a contrast of at least 3:1 against the light and the dark background;
    ``shape`` is a Vega symbol, so that colour is never the only sign. ``ansi`` is a colour
    that rich knows.
    """

    key: str
    label: str
    meaning: str
    colour: str
    shape: str
    ansi: str


STYLES: Mapping[str, BoundStyle] = {
    style.key: style
    for style in (
        BoundStyle(
            key="dram",
            label="DRAM",
            meaning="device-memory bandwidth is the nearest roof",
            colour="#2f81d6",
            shape="circle",
            ansi="blue",
        ),
        BoundStyle(
            key="l2",
            label="L2",
            meaning="L2 bandwidth is the nearest roof",
            colour="#0f9488",
            shape="triangle-right",
            ansi="cyan",
        ),
        BoundStyle(
            key="tensor",
            label="tensor",
            meaning="the tensor cores are the nearest roof",
            colour="#c2570c",
            shape="square",
            ansi="yellow",
        ),
        BoundStyle(
            key="scalar",
            label="FP units",
            meaning="the scalar floating-point units are the nearest roof",
            colour="#b8479b",
            shape="diamond",
            ansi="magenta",
        ),
        BoundStyle(
            key="latency",
            label="latency",
            meaning="no roof is near: warps wait",
            colour="#8b62d9",
            shape="triangle-up",
            ansi="bright_magenta",
        ),
        BoundStyle(
            key="too-small",
            label="too small",
            meaning="too little work to fill the GPU",
            colour="#9a7209",
            shape="triangle-down",
            ansi="bright_yellow",
        ),
        BoundStyle(
            key="peers",
            label="peers",
            meaning="a collective: it waits for other GPUs",
            colour="#d64550",
            shape="cross",
            ansi="red",
        ),
        BoundStyle(
            key="unmeasured",
            label="unmeasured",
            meaning="the report holds too little to say",
            colour="#7b828c",
            shape="circle",
            ansi="bright_black",
        ),
    )
}

_SCALAR = {"fp64": "FP64", "fp32": "FP32", "fp16": "FP16"}


def style(bound: str) -> BoundStyle:
    """The style of a verdict's bound; one that is not known looks like ``unmeasured``.

    >>> style("tensor:fp8").key
    'tensor'
    """
    if bound.startswith("tensor"):
        return STYLES["tensor"]
    if bound in _SCALAR:
        return STYLES["scalar"]
    return STYLES.get(bound, STYLES["unmeasured"])


def label(bound: str) -> str:
    """A bound or a resource, in a word or two.

    >>> label("tensor:bf16"), label("fp32"), label("dram")
    ('tensor bf16', 'FP32', 'DRAM')
    """
    if bound.startswith("tensor:"):
        return f"tensor {bound.removeprefix('tensor:').replace('_fp16acc', ' (fp16 acc.)')}"
    if bound in _SCALAR:
        return _SCALAR[bound]
    known = STYLES.get(bound)
    return bound if known is None else known.label


def unit(resource: str) -> str:
    """The unit of a resource's work: bytes, operations or FLOP.

    >>> unit("dram"), unit("tensor:int8"), unit("fp64")
    ('B', 'OP', 'FLOP')
    """
    if resource in {"dram", "l2", "l1"}:
        return "B"
    return "OP" if resource.startswith(("tensor:int", "tensor:uint", "tensor:bin")) else "FLOP"
