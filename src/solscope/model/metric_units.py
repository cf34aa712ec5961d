"""The base unit of a metric, by its name.

Reports hold no units; ncu has them in tables of its own. The rules below give what ncu 2024.1.1
prints with ``--print-units base`` (spelt as in 2025), and were checked against its output on
2,864 names of reports from CC 7.0 to 9.0. ``None`` means that no rule knows the name.

A name is ``unit__quantity[.rollup[.suffix]]``; the suffix makes a rate or a percentage of the
quantity.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Names whose unit follows no rule, first match wins. "" is a pure number or a text.
_WHOLE_NAMES: tuple[tuple[str, str], ...] = (
    (r".*\.pct|.*\.pct_of_peak_.*", "%"),
    (r"(device|c2clink|numa|nvlink|inst)__?.*(?<!executed)", ""),
    (r"sass__(thread_)?inst_executed.*per_opcode.*", ""),
    (r"(sass__|thread_)?inst_executed(_.*)?", "inst"),
    (r"launch__block_dim_[xyz]", "block"),
    (r"launch__cluster_max_active", "cluster"),
    (r"launch__(cluster_max_potential_size|uses_blocks_as_clusters)", "block"),
    (r"launch__occupancy_cluster_(gpu_)?pct", "%"),
    (r"launch__occupancy_limit_(blocks|registers|shared_mem|warps)", "block"),
    (r"launch__registers_per_thread(_allocated)?", "register/thread"),
    (r"launch__shared_mem_config_size", "byte"),
    (r"launch__shared_mem_per_block(_.*)?", "byte/block"),
    (r"launch__sm_count", "SM"),
    (r"launch__thread_count", "thread"),
    (r"launch__.*", ""),
    (r"profiler__replayer_passes(_type_warmup)?", "pass"),
    (r"profiler__(pmsampler_)?(replayer_)?(buffer_size_)?bytes.*", "byte"),
    (r"profiler__pmsampler_buffer_size_bytes", "byte"),
    (r"profiler__pmsampler_(dropped|merged)_samples", "sample"),
    (r"profiler__pmsampler_interval_time", "ns"),
    (r"profiler__pmsampler_interval_cycles", "cycle"),
    (r"profiler__.*", ""),
    (r"derived__pct_occupancy_per_register_count", "%/register"),
    (r"derived__pct_occupancy_per_shared_mem_size", "%/byte"),
    (r"derived__pct_occupancy_per_block_size", "%/"),
    (r"derived__.*_pct", "%"),
    (r"derived__avg_thread_(un)?executed(_true)?", "thread"),
    (r"derived__(sm|smsp)__sass_thread_.*_hfma_pred_on_x2", "inst"),
    (r"derived__(sm|smsp)__sass_thread_.*_x[24]", "thread"),
    (r"derived__(sm|smsp)__inst_executed_pipe_tensor_x512", "inst"),
    (r"derived__memory_.*", "byte"),
    (r"derived__[a-z]+_spilling_requests|derived__pct_.*|derived_temp.*", ""),
    (r"memory_(l1_tag_requests|l1_wavefronts|l2_theoretical_sectors)_.*", "sectors"),
    (r"memory_(access_size_)?(access_)?type", ""),
    (r"sm__maximum_warps_per_active_cycle_pct", "%"),
    (r"(sm|smsp)__maximum_warps_avg_per_active_cycle", "warp"),
    (r"smsp__pcsamp_(buffer_size|dropped)_bytes", "byte"),
    (r"smsp__pcsamp_interval_cycles", "cycle"),
    (r"smsp__pcsamp_aggregated_passes", "pass"),
    (r"smsp__pcsamp_warps_issue_stalled_no_instructions(_not_issued)?", "inst"),
    (r"smsp__pcsamp_warps_.*", "warp"),
    (r"smsp__pcsamp_.*", ""),
    (r"smsp__branch_targets_threads_uniform", "branches"),
    (r"sm__warps_active\.(sum|avg|min|max)|idc__requests\..*", ""),
    (r"sm__sass_thread_inst_executed_op_fp32_.*|smsp__sass_.*_explicit_evict_type", ""),
    (r"smsp__average_warps_issue_stalled_.*_per_issue_active\.ratio", "inst"),
    (r"smsp__average_warp_latency_issue_stalled_.*\.(ratio|max_rate)", "inst/warp"),
    (
        r"smsp__average_(warp_latency_per_inst_issued|warps_active_per_inst_executed)\.ratio",
        "cycle",
    ),
    (r"smsp__average_inst_executed_per_warp\.ratio", "inst/warp"),
    (r"smsp__sass_average_data_bytes_per_sector_.*\.(ratio|max_rate)", "byte/sector"),
    (r"l1tex__average_t_sectors_per_request_.*\.(ratio|max_rate)", "sector/request"),
    (r".*\.(ratio|max_rate)", ""),
)
# What is counted, by the quantity's name; first match wins.
_QUANTITIES: tuple[tuple[str, str], ...] = (
    (r"bank_(conflicts|reads|writes)|wavefronts|branch_targets|issue_active|issue_inst0", ""),
    (r"^(cache_requests_type_constant|icc_requests|imc_requests)|^ops_path_tensor", ""),
    (r"time_(duration|active)", "ns"),
    (r"cycles_(active|elapsed)|writeback_active|cycles_in_", "cycle"),
    (r"(^|_)bytes(_|$)", "byte"),
    (r"(^|_)sectors(_|$)", "sector"),
    (r"(^|_)requests(_|$)", "request"),
    (r"(^|_)inst_(executed|issued)|_inst_executed", "inst"),
    (r"^threads_launched", "thread"),
    (r"^warps_", "warp"),
    (r"^ctas_launched", "block"),
)
_NAMES = tuple((re.compile(pattern), unit) for pattern, unit in _WHOLE_NAMES)
_COUNTS = tuple((re.compile(pattern), unit) for pattern, unit in _QUANTITIES)
_ROLLUP = re.compile(r"(sum|avg|min|max)(?:\.(.+))?")


@lru_cache(maxsize=16384)
def unit_of(metric: str) -> str | None:
    """Base unit of a metric, ``""`` for a pure number, ``None`` where it is not known.

    >>> unit_of("dram__bytes_read.sum.per_second")
    'byte/s'
    >>> unit_of("sm__cycles_elapsed.avg.per_second")
    'hz'
    >>> unit_of("launch__waves_per_multiprocessor")
    ''
    """
    for pattern, unit in _NAMES:
        if pattern.fullmatch(metric):
            return unit
    head, _, rest = metric.partition("__")
    quantity, _, suffix = rest.partition(".")
    rollup = _ROLLUP.fullmatch(suffix) if suffix else None
    if not head or not quantity or (suffix and rollup is None):
        return None
    counted = _counted(quantity)
    if counted is None:
        return None
    return _with_suffix(counted, quantity, (rollup.group(2) if rollup else None) or "")


def _counted(quantity: str) -> str | None:
    for pattern, unit in _COUNTS:
        if pattern.search(quantity):
            return unit
    return None


def _with_suffix(unit: str, quantity: str, suffix: str) -> str | None:
    if suffix == "":
        return unit
    if suffix in ("per_second", "peak_sustained_elapsed.per_second"):
        if unit == "" and not quantity.startswith("ops_path"):
            return ""
        return "hz" if unit == "cycle" else f"{unit}/s"
    if suffix.startswith(("per_cycle_", "peak_sustained")):
        # A number of cycles per cycle is a pure number, and of warps it is warps at a time.
        if unit == "warp":
            return unit
        if unit == "cycle" or (unit == "" and not quantity.startswith("ops_path")):
            return ""
        return f"{unit}/cycle"
    return None
