"""The context of what a capture measured: from its settings, its reports, target and node.

Written as ``context.yaml`` into the bundle, for a campaign to take over. What is not known is
``null``; what people have stated there already stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from solscope.capture.engine import reading as engines
from solscope.capture.execution.run import Run
from solscope.capture.snapshot import nodes, podspec
from solscope.errors import CaptureError, ClusterError
from solscope.evidence import bundle as bundles
from solscope.flows.capture.building import server_of
from solscope.model.cluster import EngineArgs, GpuNode
from solscope.model.evidence import MeasurementContext
from solscope.model.plan import Window
from solscope.model.report import Report


def write(made: Run, found: Sequence[Report]) -> None:
    """Write ``context.yaml``; a value that stands there already is kept."""
    import yaml

    known: dict[str, Any] = yaml.safe_load(bundles.context_text(_of(made, found)))
    path = made.journal.bundle.folder / bundles.CONTEXT
    try:
        stated = yaml.safe_load(path.read_text()) if path.exists() else None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CaptureError(
            f"what is stated there cannot be read: {' '.join(str(error).split())}",
            where=str(path),
            hint=f"correct it, then: solscope capture --resume {made.journal.bundle.folder}",
        ) from error
    for key, value in stated.items() if isinstance(stated, dict) else ():
        if isinstance(value, dict) and isinstance(known.get(key), dict):
            known[key] = {**known[key], **{k: v for k, v in value.items() if v is not None}}
        elif value is not None:
            known[key] = value
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    made.journal.bundle.write(bundles.CONTEXT, text)


def _of(made: Run, found: Sequence[Report]) -> MeasurementContext:
    server, plan = server_of(made.sisters[0]), made.plan
    first, traffic = found[0], made.settings.traffic
    device = next(iter(first.devices), None)
    limits = (server.get("resources") or {}).get("limits") or {}
    gpus = str(limits.get("nvidia.com/gpu"))
    args, node = _engine(made), _node(made)
    stated = MeasurementContext(
        gpu=device.name if device else None,
        gpu_count=int(gpus) if gpus.isdigit() else None,
        image=server.get("image"),
        data_type=plan.dtype,
        isl_tokens=traffic.isl,
        osl_tokens=traffic.osl,
        concurrency=traffic.concurrency,
        engine=made.sisters[0].engine,
        ncu_version=first.provenance.tool_version,
        clock_control=plan.clock_control,
        cache_control=plan.cache_control,
        replay_mode=plan.replay_mode,
        extra={"experiment": made.settings.experiment, "workload": made.settings.workload},
        sections={"regime": {"state": _regime(plan.launches.window)}},
    )
    if node is not None:
        stated = replace(stated, driver_version=node.driver.value)
    return stated if args is None else _with_engine(stated, args, plan.gpu_memory_utilization)


def _regime(window: Window) -> str | None:
    """Only the engine's own window opens after the warm-up; the others may have let launches of
    the start in."""
    return "warm" if window is Window.ENGINE_PROFILER else None


def _with_engine(
    stated: MeasurementContext, args: EngineArgs, memory: float | None
) -> MeasurementContext:
    sections: dict[str, Mapping[str, Any]] = {
        **stated.sections,
        "identity": {
            "quantization": args.quantization,
            "kv_cache_dtype": args.kv_cache_dtype,
        },
        "parallelism": {
            "data": args.data_parallel,
            "pipeline": args.pipeline_parallel,
            "expert": args.expert_parallel,
        },
        "serving": {
            "max_num_seqs": args.max_num_seqs,
            "max_num_batched_tokens": args.max_num_batched_tokens,
            "gpu_memory_utilization": memory or args.memory_fraction.value,
            "max_model_len": args.max_model_len,
            "prefix_caching": args.prefix_caching,
        },
    }
    return replace(
        stated,
        engine=args.engine or stated.engine,
        engine_version=args.version.value,
        cuda_version=args.cuda.value,
        model=args.model,
        tensor_parallel=args.tensor_parallel,
        sections=sections,
    )


def _engine(made: Run) -> EngineArgs | None:
    """What the target's server was started with, as its owner wrote it."""
    kind, _, name = made.settings.workload.partition("/")
    with contextlib.suppress(ClusterError):
        target = made.cluster.get(kind, name)
        template = (target.get("spec") or {}).get("template") or target
        server = podspec.pod(template).container(made.settings.container)
        return None if server is None else engines.from_container(server)
    return None


def _node(made: Run) -> GpuNode | None:
    """The node that the first stage ran on; many users may not read it."""
    name = made.stages[0].answer("start").get("node")
    with contextlib.suppress(ClusterError):
        return nodes.from_object(made.cluster.get("node", str(name))) if name else None
    return None
