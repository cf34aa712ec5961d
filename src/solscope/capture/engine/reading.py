"""Options to EngineArgs: one row per field and engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from solscope.capture.engine import image
from solscope.capture.engine.arguments import Options, parse
from solscope.capture.engine.command import ServerCommand, find, in_words
from solscope.capture.engine.options import TABLES
from solscope.cluster.secrecy import MASK, masked
from solscope.model.cluster import ContainerSnapshot, EngineArgs, EnvVar, Fact

_SUFFIX: Mapping[str, float] = {
    "k": 1e3,
    "K": 2**10,
    "m": 1e6,
    "M": 2**20,
    "g": 1e9,
    "G": 2**30,
}  # vLLM reads 1k as 1000 and 1K as 1024


# vLLM's and trtllm-serve's 8000, SGLang's 30000: used to ask a live server, never shown as stated.
_DEFAULT_PORT: Mapping[str, int] = {"vllm": 8000, "tensorrt-llm": 8000, "sglang": 30000}


def from_container(
    container: ContainerSnapshot, *, files: Mapping[str, str] | None = None
) -> EngineArgs:
    """What a container's spec says of its server. ``files``: text by path in the container."""
    where = f"command and args of container {container.name}"
    return _build(find(container), container, where, files or {})


def recognises(container: ContainerSnapshot) -> bool:
    """Whether a container runs an inference server, by its command or its image's name."""
    return find(container).engine is not None or image.engine(container.image)[0] is not None


def from_process(
    cmdline: bytes,
    container: ContainerSnapshot,
    *,
    environment: tuple[EnvVar, ...] = (),
    version: str | None = None,
    metrics: str | None = None,
    files: Mapping[str, str] | None = None,
) -> EngineArgs:
    """What ``/proc/1/cmdline`` says: words separated by NUL.

    ``environment`` is the process's own; ``version`` and ``metrics`` are the bodies of GET
    /version and /metrics. Each knows more than the object does.
    """
    words = [word.decode(errors="replace") for word in cmdline.split(b"\0") if word]
    env = {var.name: var.value for var in container.env if var.value is not None}
    command = in_words(words, env)
    args = _build(command, container, "/proc/1/cmdline", files or {}, form="process")
    share = re.search(r'cache_config_info\{[^}]*gpu_memory_utilization="([\d.]+)"', metrics or "")
    if share is not None:
        source = "GET /metrics, vllm:cache_config_info"
        args = replace(args, memory_fraction=Fact(value=float(share[1]), source=source))
    match = re.search(r'"version"\s*:\s*"v?(\d+\.\d+[^"]*)"', version or "")
    if match is not None:
        cuda = args.cuda
        if not cuda.is_known or "table" in cuda.source:
            cuda = image.cuda(container.image, args.engine, match[1])
        args = replace(args, version=Fact(value=match[1], source="GET /version"), cuda=cuda)
    toolkit = next((var.value for var in environment if var.name == "CUDA_VERSION"), None)
    if toolkit:
        args = replace(args, cuda=Fact(value=toolkit, source="CUDA_VERSION in the container"))
    return args


def port_of(args: EngineArgs | None) -> int | None:
    """The server's port, stated or by the engine's default."""
    if args is None:
        return None
    return args.port or _DEFAULT_PORT.get(args.engine or "")


def _build(
    command: ServerCommand,
    container: ContainerSnapshot,
    source: str,
    files: Mapping[str, str],
    form: str | None = None,
) -> EngineArgs:
    named, _ = image.engine(container.image)
    engine = command.engine or (named if command.form == "entrypoint" else None)
    options = parse(command.arguments, TABLES.get(engine or ""))
    config = options.text("config", "extra-llm-api-options")
    notes = [*command.notes, *options.notes]
    if config is not None:
        notes += _lay_under(options, files.get(config), config)
    version = image.version(container.image, engine)
    fields = _fields(engine, options, container, version.value)
    return EngineArgs(
        engine=engine,
        form=form or command.form,
        argv=_shown(command, options),
        source=source,
        version=version,
        cuda=image.cuda(container.image, engine, version.value),
        config_file=config,
        arguments=tuple(options.arguments),
        unresolved=tuple(masked(text) for text in command.unresolved),
        notes=tuple(notes),
        **fields,
    )


def _shown(command: ServerCommand, options: Options) -> tuple[str, ...]:
    """The server's command with secrets masked."""
    secret = {a.written for a in options.arguments if a.value == MASK}
    shown: list[str] = []
    mask_next = False
    for word in command.arguments:
        name, equals, _ = word.lstrip("-").partition("=")
        if mask_next:
            shown.append(MASK)
            mask_next = False
        elif word.startswith("-") and name in secret:
            shown.append(f"{word.partition('=')[0]}={MASK}" if equals else word)
            mask_next = not equals
        else:
            shown.append(masked(word))
    return (*command.entry, *shown)


def _lay_under(options: Options, text: str | None, path: str) -> list[str]:
    """Options of a ``--config`` file, below those of the command line."""
    if text is None:
        return [f"--config {path}: its content is not known here; it may set any option"]
    import yaml

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return [f"--config {path} is not valid YAML"]
    if not isinstance(data, dict):
        return [f"--config {path} holds no options"]
    for key, value in data.items():
        name = str(key).replace("_", "-")
        if isinstance(value, bool):
            options.values.setdefault(name, "true" if value else "false")
        elif isinstance(value, dict | list):
            options.values.setdefault(name, json.dumps(value))
        else:
            options.values.setdefault(name, None if value is None else str(value))
    return [f"--config {path} was read; the command line wins over it"]


def _fields(
    engine: str | None, options: Options, container: ContainerSnapshot, version: str | None
) -> dict[str, Any]:
    reader = _READERS.get(engine or "", _any_fields)
    fields = reader(options, container, version)
    port = _integer(options.text("port"))
    return {"port": port, **fields}


def _vllm_fields(
    options: Options, container: ContainerSnapshot, version: str | None
) -> dict[str, Any]:
    served = options.several.get("served-model-name") or ()
    compilation = options.structure("compilation-config")
    speculative = options.structure("speculative-config")
    model = options.text("model") or next(iter(options.positional), None)
    return {
        "model": model,
        "served_names": served or tuple(filter(None, [options.text("served-model-name")])),
        "tensor_parallel": _integer(options.text("tensor-parallel-size")),
        "pipeline_parallel": _integer(options.text("pipeline-parallel-size")),
        "data_parallel": _integer(options.text("data-parallel-size")),
        "expert_parallel": 1 if _switch(options, "enable-expert-parallel") else None,
        "nodes": _integer(options.text("nnodes")),
        "executor": options.text("distributed-executor-backend"),
        "dtype": options.text("dtype"),
        "quantization": options.text("quantization"),
        "kv_cache_dtype": options.text("kv-cache-dtype"),
        "attention_backend": options.text("attention-backend")
        or container.env_value("VLLM_ATTENTION_BACKEND"),
        "max_num_seqs": _integer(options.text("max-num-seqs")),
        "max_num_batched_tokens": _integer(options.text("max-num-batched-tokens")),
        "max_model_len": _integer(options.text("max-model-len")),
        "memory_fraction": _vllm_memory(options, version),
        "kv_cache_memory_bytes": _integer(options.text("kv-cache-memory-bytes")),
        "is_eager": _eager(options, compilation),
        "prefix_caching": _switch(options, "enable-prefix-caching"),
        "chunked_prefill": _switch(options, "enable-chunked-prefill"),
        "speculative": _speculative(options, speculative),
        "profiler": _vllm_profiler(options, container),
        "nvtx": _switch(options, "enable-layerwise-nvtx-tracing"),
        "kv_transfer": _kv_transfer(options),
        "worker_start": container.env_value("VLLM_WORKER_MULTIPROC_METHOD"),
    }


def _vllm_memory(options: Options, version: str | None) -> Fact[float]:
    stated = _real(options.text("gpu-memory-utilization"))
    if stated is not None:
        return Fact(value=stated, source="--gpu-memory-utilization")
    if version is None:
        return Fact(missing="the engine's version: its default is 0.90 before 0.20, 0.92 since")
    major, minor = (int(x) for x in version.split(".")[:2])
    value = 0.92 if (major, minor) >= (0, 20) else 0.9
    return Fact(value=value, source=f"default of vLLM {major}.{minor}; not stated")


def _eager(options: Options, compilation: Mapping[str, Any]) -> bool | None:
    if options.has("enforce-eager"):
        return _switch(options, "enforce-eager")
    mode = str(compilation.get("cudagraph_mode", "")).upper()
    if mode == "NONE":
        return True
    return False if mode else None


def _speculative(options: Options, structure: Mapping[str, Any]) -> str | None:
    if structure:
        return str(structure.get("method") or structure.get("model") or "configured")
    return options.text("speculative-config", "speculative-model")


def _vllm_profiler(options: Options, container: ContainerSnapshot) -> str | None:
    """What /start_profile starts: the option since 0.13, variables before (gone in 0.16)."""
    structure = options.structure("profiler-config")
    if structure.get("profiler"):
        return str(structure["profiler"])
    if container.env_value("VLLM_TORCH_CUDA_PROFILE") == "1":
        return "cuda"
    return "torch" if _has_env(container, "VLLM_TORCH_PROFILER_DIR") else None


def _kv_transfer(options: Options) -> str | None:
    if not (options.has("kv-transfer-config") or options.nested.get("kv-transfer-config")):
        return None
    return str(options.structure("kv-transfer-config").get("kv_connector", "configured"))


def _sglang_fields(
    options: Options, container: ContainerSnapshot, version: str | None
) -> dict[str, Any]:
    del version
    stated = _real(options.text("mem-fraction-static"))
    # No Fact[float](...): a frozen generic with slots cannot take the mark that this sets.
    fraction: Fact[float] = Fact(value=stated, source="--mem-fraction-static")
    if stated is None:
        fraction = Fact(missing="--mem-fraction-static is not set; the server computes it")
    return {
        "model": options.text("model-path"),
        "served_names": tuple(filter(None, [options.text("served-model-name")])),
        "tensor_parallel": _integer(options.text("tensor-parallel-size")),
        "pipeline_parallel": _integer(options.text("pipeline-parallel-size")),
        "data_parallel": _integer(options.text("data-parallel-size")),
        "expert_parallel": _integer(options.text("expert-parallel-size"))
        or (1 if options.has("enable-ep-moe") or options.has("enable-deepep-moe") else None),
        "nodes": _nodes(options.text("nnodes")),
        "dtype": options.text("dtype"),
        "quantization": options.text("quantization"),
        "kv_cache_dtype": options.text("kv-cache-dtype"),
        "attention_backend": options.text("attention-backend"),
        "max_num_seqs": _integer(options.text("max-running-requests")),
        "max_num_batched_tokens": _integer(options.text("max-prefill-tokens")),
        "max_model_len": _integer(options.text("context-length")),
        "memory_fraction": fraction,
        "is_eager": True if options.has("disable-cuda-graph") else None,
        "prefix_caching": False if options.has("disable-radix-cache") else None,
        "chunked_prefill": None
        if options.text("chunked-prefill-size") is None
        else options.text("chunked-prefill-size") != "-1",
        "speculative": options.text("speculative-algorithm"),
        "profiler": "torch" if _has_env(container, "SGLANG_TORCH_PROFILER_DIR") else None,
        "nvtx": True if options.has("enable-layerwise-nvtx-marker") else None,
        "kv_transfer": options.text("disaggregation-mode"),
    }


def _trtllm_fields(
    options: Options, container: ContainerSnapshot, version: str | None
) -> dict[str, Any]:
    del container, version
    stated = _real(options.text("kv-cache-free-gpu-memory-fraction"))
    fraction: Fact[float] = Fact(
        missing="TensorRT-LLM states the KV cache as a fraction of *free* memory: "
        + ("its default" if stated is None else f"{stated:g}")
    )
    return {
        "model": options.text("model") or next(iter(options.positional), None),
        "tensor_parallel": _integer(options.text("tensor-parallel-size")),
        "pipeline_parallel": _integer(options.text("pipeline-parallel-size")),
        "expert_parallel": _integer(
            options.text("expert-parallel-size", "moe-expert-parallel-size")
        ),
        "kv_cache_dtype": options.text("kv-cache-dtype"),
        "max_num_seqs": _integer(options.text("max-batch-size")),
        "max_num_batched_tokens": _integer(options.text("max-num-tokens")),
        "max_model_len": _integer(options.text("max-seq-len")),
        "memory_fraction": fraction,
        "chunked_prefill": _switch(options, "enable-chunked-prefill"),
    }


def _any_fields(
    options: Options, container: ContainerSnapshot, version: str | None
) -> dict[str, Any]:
    del version
    tensor = options.text("tensor-parallel-size") or container.env_value("NIM_TENSOR_PARALLEL_SIZE")
    return {
        "model": options.text("model", "model-id", "model-path"),
        "tensor_parallel": _integer(tensor),
        "max_model_len": _integer(container.env_value("NIM_MAX_MODEL_LEN")),
    }


_Reader = Callable[[Options, ContainerSnapshot, str | None], dict[str, Any]]
_READERS: Mapping[str, _Reader] = {
    "vllm": _vllm_fields,
    "dynamo-vllm": _vllm_fields,
    "sglang": _sglang_fields,
    "dynamo-sglang": _sglang_fields,
    "tensorrt-llm": _trtllm_fields,
    "dynamo-trtllm": _trtllm_fields,
}


def _has_env(container: ContainerSnapshot, name: str) -> bool:
    return any(var.name == name and var.value != "" for var in container.env)


def _switch(options: Options, name: str) -> bool | None:
    if not options.has(name):
        return None
    return (options.values[name] or "true").lower() not in ("false", "0", "no")


def _integer(text: str | None) -> int | None:
    """A whole number; vLLM's ``32k`` and ``1M`` too. ``None`` where it is a reference."""
    if not text:
        return None
    factor = _SUFFIX.get(text[-1], 1)
    try:
        return round(float(text[:-1] if factor != 1 else text) * factor)
    except (ValueError, OverflowError):
        return None


def _nodes(text: str | None) -> int | None:
    """Nodes; a reference such as ``$(LWS_GROUP_SIZE)`` means more than one: 2 at least."""
    return 2 if text and text.startswith("$") else _integer(text)


def _real(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
