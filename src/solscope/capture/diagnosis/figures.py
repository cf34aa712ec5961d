"""Stated figures (a benchmark's small JSON or table) in, facts about what they claim out.

A record is read by the names of its fields; what no name tells is not guessed. Peaks come from
the record itself, from a line such as ``A100-SXM4-40GB 1555 GB/s``, or from the ceilings that the
caller hands in.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from solscope.capture.diagnosis.scanning import Facts
from solscope.model.roofline import Ceiling

PeakOf = Callable[[str, str], Ceiling | None]
"""(GPU by name, data type or ``dram``) -> the data sheet's ceiling, ``None`` where unknown."""

MOST_RECORDS = 1000
BOOST_MARGIN = 0.05
"""A card that boosts above its nominal clock passes an advertised figure by a few percent."""

SPARSE_MARGIN = 0.02
"""Published dense and sparse figures are rounded; twice one is the other within this."""

_PREFIXES = {"g": 1e9, "t": 1e12, "p": 1e15}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_DTYPES = ("nvfp4", "mxfp4", "fp4", "fp8", "int8", "int4", "bf16", "fp16", "tf32", "fp32", "fp64")
_FLOPS = re.compile(r"^(?:achieved_|measured_)?([gtp])(?:flops?|flop_s|flop_per_s)(?:_achieved)?$")
_TIME = re.compile(r"^(?:(?:time|duration|latency|mean|avg)_)?(ns|us|ms)$|"
                   r"^(?:time|duration|latency|mean|avg)_(s)$")  # fmt: skip
"""A lone ``s`` may be a sequence length."""
_RATE = re.compile(r"^(?:achieved_|measured_|bandwidth_)?([gt])(?:b_s|b_per_s|bs)$")
# `GBps` is bytes; whether `gbps` is bytes or bits no name tells.
_BYTES_PER_S = re.compile(r"([GT])Bps$")
_PEAK = re.compile(r"^(?:peak_?(\w*)|(\w+)_peak)$")
_ALIASES = {
    "kernel": ("kernel", "name", "op"),
    "gpu": ("gpu", "gpu_name", "device", "device_name"),
    "dtype": ("dtype", "precision", "data_type"),
    "bytes": ("model_bytes", "bytes", "bytes_moved"),
    "measured": ("measured", "achieved"),
    "advertised": ("advertised", "datasheet", "data_sheet", "nominal", "rated"),
    "tensor": ("tensor_pipe_active", "tensor_active", "tensor_pipe_pct"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One record's claims in base units. ``peaks`` are FLOP/s by data type, as stated."""

    where: str
    text: str
    kernel: str
    gpu: str | None = None
    dtype: str | None = None
    flop_per_s: float | None = None
    bytes_moved: float | None = None
    seconds: float | None = None
    bytes_per_s: float | None = None
    measured: float | None = None
    advertised: float | None = None
    tensor_pct: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)


def of_documents(documents: list[Any], name: str) -> Iterator[Figure]:
    """The figures of JSON or YAML documents: a record, or a list of records."""
    for document in documents:
        records = document if isinstance(document, list) else [document]
        for number, record in enumerate(records[:MOST_RECORDS]):
            if isinstance(record, dict):
                where = name if len(records) == 1 else f"{name}[{number}]"
                yield from _figure(record, where)


def of_table(lines: list[str], name: str) -> Iterator[Figure]:
    """The figures of a CSV whose first line names its columns."""
    if not lines or "," not in lines[0]:
        return
    for number, row in enumerate(csv.DictReader(lines[: MOST_RECORDS + 1]), 2):
        yield from _figure({k: v for k, v in row.items() if k}, f"{name}:{number}")


def _figure(record: dict[Any, Any], where: str) -> Iterator[Figure]:
    low = {
        _BYTES_PER_S.sub(r"\1b_s", str(key).strip()).lower(): value for key, value in record.items()
    }
    found: dict[str, Any] = {}
    for wanted, names in _ALIASES.items():
        found[wanted] = next((low[name] for name in names if name in low), None)
    dtype = _dtype(str(found["dtype"])) if found["dtype"] else None
    rate, unit = _scaled(low, _FLOPS, _PREFIXES), _unit(low)
    measured = _number(found["measured"])
    if measured is None and rate is not None and unit is not None:
        measured = rate / unit
    figure = Figure(
        where=where,
        text=", ".join(f"{k}: {v}" for k, v in low.items() if not isinstance(v, dict | list)),
        kernel=str(found["kernel"] or "the measured kernel"),
        gpu=str(found["gpu"]) if found["gpu"] else None,
        dtype=dtype,
        flop_per_s=rate,
        bytes_moved=_number(found["bytes"]),
        seconds=_scaled(low, _TIME, _SECONDS),
        bytes_per_s=_scaled(low, _RATE, _PREFIXES),
        # What is advertised without a unit is meant in that of the record's own rate.
        measured=measured,
        advertised=_number(found["advertised"]),
        tensor_pct=_number(found["tensor"]),
        peaks=dict(_peaks(low, dtype, unit)),
    )
    claims = (figure.flop_per_s, figure.bytes_moved, figure.bytes_per_s, figure.advertised)
    if any(claim is not None for claim in claims):
        yield figure


def _number(value: object) -> float | None:
    """A number above zero; text counts where it is nothing but a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def _scaled(
    low: Mapping[str, Any], names: re.Pattern[str], factors: Mapping[str, float]
) -> float | None:
    for key, value in low.items():
        hit, number = names.match(key), _number(value)
        if hit is not None and number is not None:
            return number * factors[hit[hit.lastindex or 1]]
    return None


def _unit(low: Mapping[str, Any]) -> float | None:
    """What the record's own FLOP rate counts in, by its name; ``None`` where it has none."""
    hits = (_FLOPS.match(key) for key, value in low.items() if _number(value) is not None)
    return next((_PREFIXES[hit.group(1)] for hit in hits if hit is not None), None)


def _dtype(text: str) -> str | None:
    """The data type that a word names.

    >>> _dtype("torch.bfloat16"), _dtype("fp8_e4m3")
    ('bf16', 'fp8')
    """
    word = text.lower().replace("bfloat16", "bf16").replace("float", "fp").replace("half", "fp16")
    return next((dtype for dtype in _DTYPES if dtype in word), None)


def _peaks(
    low: Mapping[str, Any], dtype: str | None, unit: float | None
) -> Iterator[tuple[str, float]]:
    """Stated peaks in FLOP/s, by data type, in the unit that their name tells or else the record's
    own rate has; a peak without either is left out."""
    for key, value in low.items():
        hit, number = _PEAK.match(key), _number(value)
        if hit is None or number is None:
            continue
        word = hit.group(1) or hit.group(2) or ""
        prefix = re.search(r"([gtp])flops?", word)
        named = _dtype(word) or dtype
        factor = _PREFIXES[prefix.group(1)] if prefix else unit
        if named is not None and factor is not None:
            yield named, number * factor


def state(figures: list[Figure], facts: Facts, peak_of: PeakOf | None) -> None:
    """Add what the figures come to, each against the peak that belongs to it."""
    for figure in figures:
        _state_flops(figure, facts, peak_of)
        _state_bandwidth(figure, facts, peak_of)
        _state_advertised(figure, facts)


def _state_flops(figure: Figure, facts: Facts, peak_of: PeakOf | None) -> None:
    rate = figure.flop_per_s
    if rate is None or _ran_as_tf32(figure, facts):
        return
    dtype = figure.dtype or (next(iter(figure.peaks)) if len(figure.peaks) == 1 else None)
    if dtype is None:
        return
    sheet = peak_of(figure.gpu, dtype) if peak_of and figure.gpu else None
    stated = figure.peaks.get(dtype)
    peak = sheet.peak if sheet else stated
    if peak is None:
        facts.add(
            "figure-without-peak",
            figure.where,
            figure.text,
            {"kernel": figure.kernel, "dtype": dtype, "gpu": figure.gpu or "(GPU not stated)"},
        )
        return
    told = {
        "kernel": figure.kernel,
        "rate": _si(rate, "FLOP/s"),
        "pct": f"{100 * rate / peak:.1f}",
        "peak": _si(peak, "FLOP/s"),
        "dtype": dtype,
        "key": sheet.key if sheet else "the file itself",
        "gpu": figure.gpu or "the stated GPU",
    }
    if sheet and stated and abs(stated / sheet.peak - 2) <= 2 * SPARSE_MARGIN:
        facts.add(
            "figure-sparse-peak",
            figure.where,
            figure.text,
            {**told, "stated": _si(stated, "FLOP/s")},
        )
    share = rate / peak
    facts.add(_share_code("figure", share), figure.where, figure.text, told)


def _share_code(stem: str, share: float) -> str:
    if share > 1 + BOOST_MARGIN:
        return f"{stem}-above-peak"
    return f"{stem}-just-above-peak" if share > 1 else f"{stem}-within-peak"


def _ran_as_tf32(figure: Figure, facts: Facts) -> bool:
    """FP32 work beyond the FP32 peak while a TF32 peak is stated: another pipe may have run."""
    fp32, tf32, rate = figure.peaks.get("fp32"), figure.peaks.get("tf32"), figure.flop_per_s
    if fp32 is None or tf32 is None or rate is None or rate <= fp32 * (1 + BOOST_MARGIN):
        return False
    told = {
        "kernel": figure.kernel,
        "rate": _si(rate, "FLOP/s"),
        "pct": f"{100 * rate / tf32:.1f}",
        "peak": _si(tf32, "FLOP/s"),
        "scalar": _si(fp32, "FLOP/s"),
    }
    if figure.tensor_pct is None:
        facts.add("figure-tf32-likely", figure.where, figure.text, told)
    else:
        facts.add(
            "figure-ran-as-tf32",
            figure.where,
            figure.text,
            {**told, "active": f"{figure.tensor_pct:g}"},
        )
    return True


def _state_bandwidth(figure: Figure, facts: Facts, peak_of: PeakOf | None) -> None:
    rate = figure.bytes_per_s
    if rate is None and figure.bytes_moved and figure.seconds:
        rate = figure.bytes_moved / figure.seconds
    if rate is None:
        return
    peak, source = _dram_peak(figure, facts, peak_of)
    if peak is None:
        return
    facts.add(
        _share_code("bandwidth", rate / peak),
        figure.where,
        figure.text,
        {
            "kernel": figure.kernel,
            "rate": _si(rate, "B/s"),
            "pct": f"{100 * rate / peak:.1f}",
            "peak": _si(peak, "B/s"),
            "source": source,
        },
    )


def _dram_peak(figure: Figure, facts: Facts, peak_of: PeakOf | None) -> tuple[float | None, str]:
    stated = facts.first("device-bandwidth")
    factor = _PREFIXES.get(stated.fields["prefix"].lower()) if stated is not None else None
    if stated is not None and factor is not None:
        return float(stated.fields["rate"].replace(",", "")) * factor, stated.where
    gpu = figure.gpu or facts.value("gpu-name", "name")
    sheet = peak_of(gpu, "dram") if peak_of and gpu else None
    return (sheet.peak, sheet.key) if sheet else (None, "")


def _state_advertised(figure: Figure, facts: Facts) -> None:
    measured, advertised = figure.measured, figure.advertised
    if measured is None or advertised is None:
        return
    told = {
        "measured": f"{measured:g}",
        "advertised": f"{advertised:g}",
        "pct": f"{100 * measured / advertised:.1f}",
    }
    facts.add(_share_code("advertised", measured / advertised), figure.where, figure.text, told)


_LOOKUP = re.compile(r"embed|\bwte\b|lookup", re.IGNORECASE)
_FULL_READ = re.compile(r"lm_?head|unembed|output", re.IGNORECASE)


def state_byte_model(documents: list[Any], name: str, facts: Facts) -> None:
    """A model of the bytes of a decode step by weight shapes: a lookup table moves its rows only.

    Known by ``dtype_bytes``, and shapes of two numbers.
    """
    for model in documents:
        if not isinstance(model, dict) or _number(model.get("dtype_bytes")) is None:
            continue
        width = float(model["dtype_bytes"])
        tokens = _number(model.get("tokens", model.get("batch", 1)))
        for key, shape in model.items():
            is_shape = isinstance(shape, list) and len(shape) == 2
            if not is_shape or not _LOOKUP.search(key) or _FULL_READ.search(key):
                continue
            rows, columns = (_number(value) for value in shape)
            if rows is None or columns is None or tokens is None or tokens >= rows:
                continue
            facts.add(
                "lookup-table",
                f"{name}:{key}",
                f"{key}: {shape[0]} x {shape[1]}, {width:g} bytes each, {tokens:g} tokens",
                {
                    "table": key,
                    "rows": f"{rows:,.0f}",
                    "tokens": f"{tokens:g}",
                    "bytes": f"{tokens * columns * width:.0f}",
                    "all": _si(rows * columns * width, "B"),
                },
            )


def _si(value: float, unit: str) -> str:
    """A number with its unit, four digits.

    >>> _si(989.4e12, "FLOP/s"), _si(2.383e12, "B/s")
    ('989.4 TFLOP/s', '2.383 TB/s')
    """
    for limit, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"
