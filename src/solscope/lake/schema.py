"""The columns of the lake, their units, and how they may change.

The rule of evolution: columns are only added, always nullable, and ``VERSION`` grows by one.
None is renamed, removed, retyped or given another unit. Each table carries the version it was
last written with; one that is newer than ``VERSION`` is refused, for reading and for writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import pyarrow as pa

VERSION: Final = 2
VERSION_KEY: Final = "solscope.schemaVersion"
PARTITIONS: Final = ("hardware", "month")
# The row in this table makes a publish visible; it is written last.
COMMITS: Final = "campaigns"

Kind = Literal["text", "integer", "number", "flag", "instant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: ``meaning`` says its unit; ``since`` is the version that added it."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    since: int = 1


def _text(name: str, meaning: str, *, required: bool = False, since: int = 1) -> Column:
    return Column(name=name, kind="text", meaning=meaning, required=required, since=since)


def _integer(name: str, meaning: str, *, required: bool = False, since: int = 1) -> Column:
    return Column(name=name, kind="integer", meaning=meaning, required=required, since=since)


def _number(name: str, meaning: str, *, since: int = 1) -> Column:
    return Column(name=name, kind="number", meaning=meaning, since=since)


def _flag(name: str, meaning: str, *, required: bool = False) -> Column:
    return Column(name=name, kind="flag", meaning=meaning, required=required)


_KEYS: Final = (
    _text(
        "hardware",
        "chip, a key of the ceilings (`h100_sxm`), or `unknown`; partition",
        required=True,
    ),
    _text("month", "`YYYY-MM` of the capture in UTC, else of the import; partition", required=True),
    _text("publish_id", "digest of the publish's content", required=True),
    _text("campaign", "slug of the campaign, its experiment id", required=True),
)
_CELL: Final = (*_KEYS, _text("cell", "id of the cell", required=True))

KERNEL_LAUNCHES: Final = (
    *_CELL,
    _integer("launch_index", "position among the cell's launches, from 0", required=True),
    _text("name", "short name of the kernel", required=True),
    _text("name_full", "demangled name with parameters"),
    _text("category", "kernel family"),
    _text("report", "file that the launch was read from"),
    _integer("device", "ordinal of the GPU"),
    _integer("stream", "CUDA stream id"),
    _text("grid", "blocks, `XxYxZ`"),
    _text("block", "threads of a block, `XxYxZ`"),
    _number("duration_ns", "ns, as profiled"),
    _number("dram_bytes", "byte read and written"),
    _number("flop_count", "FLOP of the scalar pipes"),
    _number("tensor_flop_count", "FLOP of the tensor pipes"),
    _number("achieved_dram_pct_peak", "% of the peak at the clock of the profile"),
    _number("achieved_sm_pct_peak", "% of the peak at the clock of the profile"),
    _number("achieved_occupancy_pct", "% of the SM's warp slots"),
    _integer("registers_per_thread", "registers"),
    _number("smem_per_block_bytes", "byte of shared memory per block"),
    _text("block_limit_factor", "what limits resident blocks"),
    _text("more_json", "further keys of the campaign's file, as JSON"),
)
KERNELS: Final = (
    *_CELL,
    _text("name", "short name of the kernel", required=True),
    _text("name_full", "demangled name with parameters"),
    _text("category", "kernel family"),
    _integer("launches", "launches that the row sums"),
    _number("kernel_time_ns", "ns, sum over the profiled launches"),
    _number("dram_bytes_total", "byte read and written"),
    _number("sm_flops_total", "FLOP of the scalar pipes"),
    _number("tensor_flops_total", "FLOP of the tensor pipes"),
    _number("arithmetic_intensity_flops_per_byte", "FLOP per DRAM byte"),
    _number("achieved_dram_pct_peak", "% of the peak at the clock of the profile"),
    _number("achieved_sm_pct_peak", "% of the peak at the clock of the profile"),
    _number("achieved_occupancy_pct", "% of the SM's warp slots"),
    _text("block_limit_factor", "what limits resident blocks"),
    _number("achieved_tflops", "TFLOP/s"),
    _number("time_share", "share of the cell's kernel time, 0 to 1"),
    _text("bound", "what binds the kernel, as `analyze` says it"),
    _flag("is_at_roof", "null unless FLOP or bytes were counted"),
    _text("tensor_engagement", "what the tensor pipes did, as `analyze` says it"),
    _number("speed_of_light_profiled", "achieved over the ceiling at the profiled clock, 0 to 1"),
    _text("speed_of_light_profiled_ceiling", "name of that ceiling"),
    _number("speed_of_light_datasheet", "achieved over the data sheet's ceiling, 0 to 1"),
    _text("speed_of_light_datasheet_ceiling_key", "key path of that ceiling"),
    _integer("registers_per_thread", "registers"),
    _number("smem_per_block_bytes", "byte of shared memory per block"),
    _text("block_limit_factors_json", "all that limit resident blocks, as JSON"),
    _text("absent_because_json", "why a column is null, by its key, as JSON"),
    _text("more_json", "further keys of the campaign's file, as JSON"),
    _text("captured_at", "when the capture began, else when it was imported; UTC", since=2),
    _text("grid", "blocks, `XxYxZ`", since=2),
    _text("block", "threads of a block, `XxYxZ`", since=2),
    _text("kind", "what a result stands for, such as `kernel` or `range`", since=2),
    _integer("device_ordinal", "ordinal of the GPU", since=2),
    _text("tool", "what measured it", since=2),
    _text("tool_version", "its version", since=2),
    _text("clock_control", "ncu's word", since=2),
    _number("sm_clock_hz", "Hz, during the profile", since=2),
    _number("dram_clock_hz", "Hz, during the profile", since=2),
    _text("cache_control", "ncu's word", since=2),
    _text("replay_mode", "ncu's word", since=2),
    _integer("metric_count", "metrics collected", since=2),
    _text("metric_set", "digest of their names: equal sets need equal passes", since=2),
)
CAMPAIGNS: Final = (
    *_KEYS,
    _text("name", "title of the campaign"),
    _text("description", "what was asked"),
    _text("tier", "`VERDICT` or `DRAFT`, after the gates", required=True),
    _flag("strict", "whether a gap would have refused it", required=True),
    _integer("gap_count", "gates not passed, or not run", required=True),
    _text("gaps_json", "those gates with their reasons, as JSON", required=True),
    _text("sol_rigor", "rigor of the speed of light, `L1` to `L4`"),
    _text("next_lever", "what to change next"),
    _integer("cell_count", "cells published", required=True),
    _integer("kernel_count", "rows of this publish in `kernels`", required=True),
    _integer("kernel_launch_count", "rows of this publish in `kernel_launches`", required=True),
    _text("config_json", "the campaign's configuration, as JSON", required=True),
    _text("verdict_json", "what the gates said, as in `verdict.json`, without `taken_at`"),
    _integer("schema_version", "version of this schema that the row was made with", required=True),
    _text("tool_version", "version of solscope", required=True),
    Column(name="published_at", kind="instant", meaning="UTC", required=True),
    _text("frontier_json", "levers that were open, refuted (with why) and done, as JSON", since=2),
)
CONTEXTS: Final = (
    *_CELL,
    _text("identity_model", "model served"),
    _text("identity_model_path", "where its weights came from"),
    _text("identity_hardware", "key of the ceilings"),
    _text("identity_quantization", "data type of the weights"),
    _text("identity_kv_cache_dtype", "data type of the KV cache"),
    _integer("parallelism_tensor", "ranks"),
    _integer("parallelism_data", "replicas"),
    _integer("parallelism_pipeline", "ranks"),
    _integer("parallelism_expert", "ranks"),
    _text("parallelism_strategy", "as the engine calls it"),
    _integer("serving_max_num_seqs", "sequences"),
    _integer("serving_max_num_batched_tokens", "tokens"),
    _number("serving_gpu_memory_utilization", "share, 0 to 1"),
    _integer("serving_max_model_len", "tokens"),
    _text("serving_cudagraph_mode", "as the engine calls it"),
    _flag("serving_async_scheduling", "whether it is on"),
    _flag("serving_prefix_caching", "whether it is on"),
    _text("workload_dataset", "name"),
    _number("workload_input_tokens", "tokens of a request"),
    _number("workload_output_tokens", "tokens of a request"),
    _integer("workload_concurrency", "requests in flight"),
    _integer("workload_num_prompts", "requests"),
    _text("regime_state", "`warm` or `cold`"),
    _text("regime_tier", "`latency` or `throughput`"),
    _text("stack_engine", "serving engine"),
    _text("stack_version", "its version or commit"),
    _text("stack_image", "container image"),
    _text("stack_bench_backend", "what sent the requests"),
    _text("grounding_ceiling_key", "chip or key path of the ceilings"),
    _text("grounding_sol_rigor", "`L1` to `L4`"),
    _integer("grounding_trials_n", "trials"),
    _number("grounding_trials_mean", "in the unit of `grounding_trials_unit`"),
    _number("grounding_trials_std", "in the unit of `grounding_trials_unit`"),
    _text("grounding_trials_quantity", "what was tried"),
    _text("grounding_trials_unit", "unit of mean and standard deviation"),
    _flag("grounding_same_node", "whether both arms ran on one node"),
    _text("grounding_baseline", "name of the baseline"),
    _flag("grounding_baseline_is_production", "whether the baseline is what production runs"),
    _text("context_json", "the whole context as it was stated, as JSON", required=True),
)
RECEIPTS: Final = (
    *_CELL,
    _integer("receipt_index", "position in the cell's receipts, from 0", required=True),
    _text(
        "step",
        "step of the capture; `file`: a file of the campaign; `report`: one that was read",
        required=True,
    ),
    _text("began_at", "as the receipt says it"),
    _text("ended_at", "as the receipt says it"),
    _integer("exit_status", "exit status of the step"),
    _text("artifact", "path of the file, for `file` and `report`"),
    _text("sha256", "digest of the file, for `file` and `report`"),
    _integer("size_bytes", "size of the file, for `file` and `report`"),
    _text("receipt_json", "the whole receipt, as JSON"),
)

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "kernel_launches": KERNEL_LAUNCHES,
    "kernels": KERNELS,
    "contexts": CONTEXTS,
    "receipts": RECEIPTS,
    COMMITS: CAMPAIGNS,
}

DUCKDB_TYPES: Final[Mapping[Kind, str]] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "flag": "BOOLEAN",
    "instant": "TIMESTAMP WITH TIME ZONE",
}


def arrow(table: str) -> pa.Schema:
    """The table's schema as Arrow. Only types that every Delta reader knows are used."""
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "instant": pa.timestamp("us", tz="UTC"),
    }
    return pa.schema(
        pa.field(column.name, types[column.kind], nullable=not column.required)
        for column in TABLES[table]
    )


def as_document() -> dict[str, object]:
    """The schema as plain data, for the golden file of its version."""
    return {
        "version": VERSION,
        "partitions": list(PARTITIONS),
        "tables": {
            table: {
                column.name: {
                    "kind": column.kind,
                    "required": column.required,
                    "since": column.since,
                }
                for column in columns
            }
            for table, columns in TABLES.items()
        },
    }
