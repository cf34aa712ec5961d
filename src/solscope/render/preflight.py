"""A preflight's answer as a page for the terminal and as data. Never holds a raw object."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.cluster import EngineArgs, Fact, GpuNode, ProbeKind, WorkloadSnapshot
from solscope.model.finding import Finding
from solscope.model.preflight import SCHEMA, Preflight

_MARK = {"blocks": "BLOCKS ", "warning": "warning", "info": "info   "}
_ENGINE_FIELDS = (
    "model", "served_names", "tensor_parallel", "pipeline_parallel", "data_parallel",
    "expert_parallel", "nodes", "executor", "dtype", "quantization", "kv_cache_dtype",
    "attention_backend", "max_num_seqs", "max_num_batched_tokens", "max_model_len",
    "kv_cache_memory_bytes", "is_eager", "prefix_caching", "chunked_prefill", "speculative",
    "profiler", "nvtx", "kv_transfer", "port", "config_file", "worker_start",
)  # fmt: skip
_NODE_FIELDS = (
    "product", "compute_capability", "gpu_memory_bytes", "gpu_count", "driver", "cuda_supported",
    "sharing", "replicas", "mig_strategy", "vgpu", "memory_bytes", "architecture",
)  # fmt: skip


def as_text(preflight: Preflight, width: int = 100) -> str:
    """The page: the answer first, then what it rests on."""
    workload = preflight.snapshot
    lines = [f"{workload.reference}  ({workload.source})", ""]
    # Never wrapped: one line that can be searched for and quoted.
    lines.append(f"  {preflight.line}")
    for question in preflight.questions:
        if question not in preflight.line:
            lines += _wrapped(f"to settle first: {question}", "  ", width, hang="    ")
    for note in workload.notes:
        lines += _wrapped(f"note: {note}", "  ", width, hang="    ")
    lines += ["", "What runs"]
    lines += _table(list(_facts(workload)), width)
    lines += ["", "Ways of capturing"]
    rows = [(s.strategy, "open" if s.is_open else "closed", s.reason) for s in preflight.strategies]
    for name, state, reason in rows:
        lines += _wrapped(f"{name:<8} {state:<7} {reason}", "  ", width, hang=" " * 19)
    lines += ["", f"Findings ({len(preflight.findings)})"]
    for finding in preflight.findings:
        lines += _finding(finding, width)
    unread = list(_unread(workload))
    if unread:
        lines += ["", "Not read"]
        for what, missing in unread:
            lines += _wrapped(f"{what}: {missing}", "  ", width, hang="    ")
    return "\n".join(line.rstrip() for line in lines)


def as_data(preflight: Preflight) -> dict[str, Any]:
    """The same as JSON builtins, schema ``solscope.preflight/1``."""
    workload = preflight.snapshot
    return {
        "schema": SCHEMA,
        "target": {
            "kind": workload.kind,
            "name": workload.name,
            "namespace": workload.namespace,
            "context": workload.context,
            "source": workload.source,
            "taken_at": workload.taken_at,
            "replicas": workload.replicas,
            "container": workload.container,
            "gpu_containers": list(workload.gpu_containers),
            "owners": list(workload.owners),
            "pods": [pod.name for pod in workload.pods],
            "notes": list(workload.notes),
        },
        "answer": preflight.answer.value,
        "strategy": preflight.strategy.value,
        "line": preflight.line,
        "exit_code": preflight.exit_code,
        "questions": list(preflight.questions),
        "strategies": [
            {"strategy": s.strategy.value, "is_open": s.is_open, "reason": s.reason}
            for s in preflight.strategies
        ],
        "findings": [
            {
                "code": f.code,
                "severity": f.severity.value,
                "where": f.where,
                "fact": f.fact,
                "remedy": f.remedy,
                "evidence": list(f.evidence),
            }
            for f in preflight.findings
        ],
        "measurement_context": _context(workload),
        "unread": dict(_unread(workload)),
    }


def _context(workload: WorkloadSnapshot) -> dict[str, Any]:
    """What every number from this workload must carry."""
    engine, server = workload.engine, workload.server
    liveness = server.probe(ProbeKind.LIVENESS) if server else None
    context: dict[str, Any] = {
        "image": server.image if server else None,
        "gpus_per_pod": server.gpus if server else None,
        "host_memory_limit_bytes": server.memory_limit_bytes if server else None,
        "liveness_budget_s": liveness.budget_s if liveness else None,
        "engine": None,
        "node": None if workload.node is None else _node(workload.node),
    }
    if engine is not None:
        fields = {name: getattr(engine, name) for name in _ENGINE_FIELDS}
        fields["served_names"] = list(engine.served_names)
        context["engine"] = {
            "name": engine.engine,
            "form": engine.form,
            "source": engine.source,
            "version": _fact(engine.version),
            "cuda": _fact(engine.cuda),
            "memory_fraction": _fact(engine.memory_fraction),
            **fields,
            "argv": list(engine.argv),
            "unresolved": list(engine.unresolved),
            "notes": list(engine.notes),
        }
    return context


def _node(node: GpuNode) -> dict[str, Any]:
    facts = {name: _fact(getattr(node, name)) for name in _NODE_FIELDS}
    return {"name": node.name, **facts}


def _fact(fact: Fact[Any]) -> dict[str, Any]:
    if fact.value is not None:
        return {"value": fact.value, "source": fact.source}
    return {"value": None, "missing": fact.missing}


def _facts(workload: WorkloadSnapshot) -> Iterator[tuple[str, str, str]]:
    server, engine = workload.server, workload.engine
    if server is not None:
        gpus = f"{server.gpus} x {server.gpu_resource}" if server.gpus else "none requested"
        yield "container", server.name, f"image {server.image}"
        yield "GPUs", gpus, "its limits"
    if workload.replicas is not None:
        live = f"{len(workload.pods)} pods seen" if workload.pods else "spec"
        yield "replicas", str(workload.replicas), live
    if engine is not None:
        yield from _engine_facts(engine)
    node = workload.node
    if node is not None:
        yield "node", node.name, ""
        for label, name in (("GPU", "product"), ("driver", "driver"), ("CUDA", "cuda_supported")):
            fact: Fact[Any] = getattr(node, name)
            yield label, *_shown(fact)


def _engine_facts(engine: EngineArgs) -> Iterator[tuple[str, str, str]]:
    yield "engine", engine.engine or "unknown", f"{engine.source} ({engine.form})"
    yield "version", *_shown(engine.version)
    yield "CUDA in image", *_shown(engine.cuda)
    for name in _ENGINE_FIELDS:
        value = getattr(engine, name)
        if value in (None, ()):
            continue
        shown = ", ".join(value) if isinstance(value, tuple) else str(value)
        yield name.replace("_", " "), shown, ""
    if engine.memory_fraction.value is not None:
        yield "memory fraction", *_shown(engine.memory_fraction)


def _shown(fact: Fact[Any]) -> tuple[str, str]:
    if fact.value is None:
        return "unknown", f"missing: {fact.missing}" if fact.missing else ""
    return str(fact.value), fact.source


def _unread(workload: WorkloadSnapshot) -> Iterator[tuple[str, str]]:
    unknown: dict[str, list[str]] = {}
    for kind, fact in workload.related.items():
        if fact.is_unknown:
            unknown.setdefault(str(fact.missing), []).append(kind)
    for missing, kinds in unknown.items():
        yield ", ".join(kinds), missing
    for node in workload.nodes:
        if node.product.is_unknown and node.driver.is_unknown:
            yield f"node {node.name}", str(node.product.missing)
    silent: dict[str, list[str]] = {}
    for name, reason in (workload.inside.unread if workload.inside else {}).items():
        silent.setdefault(reason, []).append(name)
    for reason, names in silent.items():
        yield f"inside: {', '.join(names)}", reason


def _finding(finding: Finding, width: int) -> list[str]:
    head = f"{_MARK[finding.severity.value]} {finding.code} ({finding.where})"
    lines = ["  " + head]
    lines += _wrapped(finding.fact, " " * 10, width)
    if finding.remedy != "nothing to do":
        lines += _wrapped(f"do: {finding.remedy}", " " * 10, width, hang=" " * 14)
    for evidence in finding.evidence:
        lines += _wrapped(f"- {evidence}", " " * 10, width, hang=" " * 12)
    return lines


def _table(rows: Sequence[tuple[str, str, str]], width: int) -> list[str]:
    label = max((len(row[0]) for row in rows), default=0)
    lines = []
    for name, value, source in rows:
        text = f"{name:<{label}}  {value}" + (f"   [{source}]" if source else "")
        lines += _wrapped(text, "  ", width, hang=" " * (label + 4))
    return lines


def _wrapped(text: str, indent: str, width: int, hang: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 60),
        initial_indent=indent,
        subsequent_indent=indent if hang is None else hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
