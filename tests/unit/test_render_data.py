"""JSON by its shipped schema, CSV beside it."""

from __future__ import annotations

import csv
import io
import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.analyses import HOSTILE, a_decode_step, a_gemm, a_hostile_analysis, an_analysis

from solscope.model.verdict import Analysis
from solscope.render import data

SCHEMA = json.loads(
    (files("solscope.render") / "schemas" / "analysis-1.schema.json").read_text("utf-8")
)


@pytest.mark.parametrize("make", [a_decode_step, a_hostile_analysis])
def test_the_json_is_valid_by_the_shipped_schema(make: Any) -> None:
    analysis: Analysis = make()
    document = json.loads(data.as_json(analysis))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_the_schema_names_every_key_that_is_written() -> None:
    shown = json.loads(data.as_json(a_decode_step(), show_session=True))
    assert set(shown) == set(SCHEMA["properties"])
    assert set(shown["reports"][0]) == set(SCHEMA["$defs"]["report"]["properties"])
    assert set(shown["kernels"][0]) == set(SCHEMA["$defs"]["kernel"]["properties"])
    sol = SCHEMA["$defs"]["kernel"]["properties"]["speed_of_light"]["properties"]
    assert set(shown["kernels"][0]["speed_of_light"]["profiled"]) == set(
        sol["profiled"]["properties"]
    )


def test_the_numbers_of_the_gemm() -> None:
    (kernel,) = json.loads(data.as_json(an_analysis(a_gemm())))["kernels"]
    assert kernel["duration_ns"] == 240_000
    assert kernel["dram_bytes"] == 354_000_000
    assert kernel["arithmetic_intensity"] == pytest.approx(206.2e9 / 354e6)
    assert kernel["flop"]["tensor"] == {"bf16": 206_158_000_000}
    assert kernel["speed_of_light"]["datasheet"]["ceiling_key"] == "h100_sxm.bf16_dense_pflops"
    assert kernel["speed_of_light"]["profiled"]["clock_hz"] == 1_755_000_000
    assert kernel["occupancy_limiter"] == "shared memory, registers"


def test_what_was_not_measured_is_null_with_its_reason() -> None:
    kernels = json.loads(data.as_json(a_decode_step()))["kernels"]
    (kernel,) = [k for k in kernels if k["name"] == "reshape_and_cache_flash_kernel"]
    assert kernel["dram_bytes"] is None
    assert kernel["flop"]["tensor"] is None
    assert kernel["speed_of_light"]["profiled"]["value"] is None
    assert kernel["dram_bytes_per_s_estimate"] == 2.045e12
    assert "dram_bytes" in {a["field"] for a in kernel["absences"]}


def test_kernels_come_longest_first() -> None:
    durations = [k["duration_ns"] for k in json.loads(data.as_json(a_decode_step()))["kernels"]]
    assert durations == sorted(durations, reverse=True)


def test_the_session_is_there_only_where_asked_for() -> None:
    assert b"hunter2" not in data.as_json(a_decode_step())
    assert b"someone" not in data.as_json(a_hostile_analysis())
    assert b"hunter2" in data.as_json(a_decode_step(), show_session=True)


def test_csv_has_a_line_per_kernel_and_empty_cells_for_the_unmeasured() -> None:
    rows = list(csv.DictReader(io.StringIO(data.as_csv(a_decode_step()))))
    assert len(rows) == 9
    (row,) = [r for r in rows if r["name"] == "reshape_and_cache_flash_kernel"]
    assert row["dram_bytes"] == ""
    assert "no DRAM byte counter" in row["absent_because"]
    assert rows[0]["flop_tensor"] == "206158000000"
    assert rows[0]["report"] == "decode.ncu-rep"


def test_csv_quotes_a_hostile_name_whole() -> None:
    rows = list(csv.DictReader(io.StringIO(data.as_csv(a_hostile_analysis()))))
    assert HOSTILE in {row["name"] for row in rows}
    assert {row["report_complete"] for row in rows} == {"no"}


def test_a_number_that_is_not_finite_is_null() -> None:
    (kernel,) = json.loads(data.as_json(an_analysis(a_gemm(dram_pct=float("nan")))))["kernels"]
    assert kernel["dram_pct"] is None
