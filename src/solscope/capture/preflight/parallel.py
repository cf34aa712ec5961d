"""More than one GPU, process or pod: what replay cannot hold still."""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import container_name, found
from solscope.model.cluster import EngineArgs, WorkloadSnapshot
from solscope.model.finding import Finding, Severity

_GROUPS = {
    "LeaderWorkerSet": "its pods are one group: the leader alone waits for its workers for ever",
    "RayCluster": "Ray's workers are children of the raylet, not of the server, and a copy would "
    "join the cluster",
    "RayService": "Ray's workers are children of the raylet, not of the server",
    "RayJob": "Ray's workers are children of the raylet, not of the server",
    "RayClusterFleet": "Ray's workers are children of the raylet, not of the server",
    "DynamoGraphDeployment": "its worker registers itself in a discovery store at start: a copy "
    "would get production traffic",
    "DynamoComponentDeployment": "its worker registers itself in a discovery store at start: a "
    "copy would get production traffic",
    "StormService": "its controller pairs prefill and decode pods and routes to them by label",
}
_CONTROLLED = frozenset(
    {"InferenceService", "LLMInferenceService", "NIMService", "Model", "ServingRuntime",
     "ClusterServingRuntime", "LLMInferenceServiceConfig"}
)  # fmt: skip
# By the model's name only; an unknown name proves nothing.
_MOE = re.compile(
    r"mixtral|-A\d+(?:\.\d+)?B|deepseek-(?:v[23]|r1)(?!.*distill)|gpt-oss|kimi-k2|minimax|"
    r"llama-4|dbrx|glm-4\.[5-9]|glm-5|qwen\d?(?:\.\d)?-?moe|ernie-4\.5-\d+b-a|hunyuan-a",
    re.IGNORECASE,
)
_SHARED_CACHE = re.compile(
    r"LMCACHE_(?:REMOTE_URL|ENABLE_NIXL|NIXL_|ENABLE_P2P|(?:ENABLE_)?CONTROLLER|LOOKUP_URL|"
    r"DISTRIBUTED_URL)|MOONCAKE_MASTER|VLLM_NIXL_SIDE_CHANNEL"
)
_SPARSE = re.compile(r"deepseek-v3\.2|deepseek-v4|\bnsa\b|glm-5", re.IGNORECASE)


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """Groups and controllers, ranks, experts, sparse attention, transfer of caches."""
    yield from _groups(workload)
    engine = workload.engine
    if engine is None:
        return
    yield from _nodes(workload, engine)
    yield from _ranks(workload, engine)
    yield from _experts(workload, engine)
    yield from _discovery(workload, engine)
    yield from _transfer(workload, engine)


def is_moe(engine: EngineArgs | None) -> str | None:
    """Why the model is taken for a mixture of experts, ``None`` where nothing says so."""
    if engine is None:
        return None
    if engine.expert_parallel:
        return "expert parallelism is switched on"
    names = (engine.model or "", *engine.served_names)
    name = next((n for n in names if _MOE.search(n)), None)
    return f"the model's name {name}" if name else None


def is_sparse(engine: EngineArgs | None) -> str | None:
    """Why attention is taken for sparse, ``None`` where nothing says so."""
    if engine is None:
        return None
    if re.search(r"sparse|nsa|dsa", engine.attention_backend or "", re.IGNORECASE):
        return f"attention backend {engine.attention_backend}"
    names = (engine.model or "", *engine.served_names)
    name = next((n for n in names if _SPARSE.search(n)), None)
    return f"the model's name {name}" if name else None


def _groups(workload: WorkloadSnapshot) -> Iterator[Finding]:
    kinds = [workload.kind, *(owner.partition("/")[0] for owner in workload.owners)]
    group = next((kind for kind in kinds if kind in _GROUPS), None)
    if group is not None:
        yield found(
            "pods-of-a-group",
            Severity.BLOCKS,
            workload.reference,
            f"{group}: {_GROUPS[group]}",
            "profile the same model and flags in a Deployment of one pod, or an isolated "
            "operation (`solscope sister --harness FILE.py`)",
            f"kind {workload.kind}" if group == workload.kind else f"owned by {workload.owners[0]}",
        )
    elif workload.kind in _CONTROLLED:
        yield found(
            "pods-made-by-a-controller",
            Severity.INFO,
            workload.reference,
            f"{workload.kind}: a controller makes its pods; this object holds only a part of them",
            "name what the controller made: deploy/NAME or pod/NAME",
            *workload.notes,
        )


def _nodes(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    ranks = engine.gpus_per_replica or 1
    server = workload.server
    spread = server is not None and 0 < server.gpus < ranks
    by_ray = engine.executor == "ray" or any("Ray" in note for note in engine.notes)
    if (engine.nodes or 1) > 1 or spread:
        yield found(
            "multi-node",
            Severity.BLOCKS,
            container_name(workload),
            "one replica spans several pods: a copy of one of them cannot run",
            "profile a setting that fits one pod, or an isolated operation "
            "(`solscope sister --harness FILE.py`)",
            f"{ranks} ranks, {server.gpus if server else '?'} GPUs in the pod, nodes: "
            f"{engine.nodes or 'not stated'}",
        )
    elif by_ray:
        yield found(
            "ray-executor",
            Severity.BLOCKS,
            container_name(workload),
            "workers are children of the raylet, not of the server: a profiler that follows the "
            "server's children sees no GPU work",
            "start the sister with --distributed-executor-backend mp",
            f"executor {engine.executor or 'not stated'}",
            *(note for note in engine.notes if "Ray" in note),
        )


def _ranks(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    tensor, pipeline = engine.tensor_parallel or 1, engine.pipeline_parallel or 1
    if tensor * pipeline > 1:
        yield found(
            "collective-under-serialised-replay",
            Severity.WARNING,
            container_name(workload),
            f"{tensor * pipeline} ranks work together: ncu serialises kernels over all profiled "
            "processes, so a collective under kernel replay waits for ever, and time-outs of the "
            "engine kill it before",
            "exclude nccl, all_reduce, all_gather, multimem, nvshmem and deep_ep kernels by name; "
            "profile one rank, or TP=1 or eager mode; or an isolated operation (harness)",
            f"tensor parallel {tensor}, pipeline parallel {pipeline}",
        )
    if (engine.data_parallel or 1) > 1:
        yield found(
            "data-parallel",
            Severity.INFO,
            container_name(workload),
            f"{engine.data_parallel} data-parallel engines run in one server",
            "profile one of them: data parallel 1 in the sister, and say so with the numbers",
            f"data parallel {engine.data_parallel}",
        )


def _experts(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    moe, sparse = is_moe(engine), is_sparse(engine)
    if moe:
        yield found(
            "mixture-of-experts",
            Severity.WARNING,
            container_name(workload),
            "experts see a different load at every step: launches of one kernel are not "
            "comparable, and application replay finds other kernels in each pass",
            "replay one operation with a fixed routing (harness), and state the routing",
            moe,
        )
    if sparse:
        yield found(
            "sparse-attention",
            Severity.WARNING,
            container_name(workload),
            "sparse attention picks its blocks by the data: the work of a launch changes with "
            "every request",
            "replay one operation on fixed input (harness)",
            sparse,
        )


def _discovery(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    if (engine.engine or "").startswith("dynamo-") and workload.kind not in _GROUPS:
        yield found(
            "registers-itself",
            Severity.BLOCKS,
            container_name(workload),
            "a Dynamo worker enters itself into the discovery store as it starts: a copy would get "
            "production traffic whatever its labels",
            "profile the engine alone, with the same options: vllm serve, sglang.launch_server or "
            "trtllm-serve",
            f"engine {engine.engine}",
        )


def _transfer(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    server = workload.server
    names = [v.name for v in (server.env if server else ()) if _SHARED_CACHE.match(v.name)]
    if engine.kv_transfer or names:
        yield found(
            "kv-transfer",
            Severity.WARNING,
            container_name(workload),
            "the server exchanges its KV cache with others: a copy with the same settings joins "
            "them",
            "take the transfer out of the sister; its numbers then hold without the cost of "
            "transfer, which must be said",
            *([f"connector {engine.kv_transfer}"] if engine.kv_transfer else []),
            *names[:3],
        )
