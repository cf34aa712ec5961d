"""The engine options that a sister must lose or change, and why. Data, read by ``serving``.

Sources: the engines' own argument parsers as of 2026 (vLLM 0.8 to 0.32, SGLang 0.4 and 0.5,
TensorRT-LLM 1.x). ``shortest`` is the shortest unambiguous beginning: argparse accepts those.
"""

from __future__ import annotations

from dataclasses import dataclass

from solscope.capture.sister.command import Engine

SEVERAL = 99
"""As many values as follow."""

VLLM, SGLANG, TRTLLM = Engine.VLLM, Engine.SGLANG, Engine.TENSORRT_LLM


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOption:
    """One option: its full name with dashes, its shortest form, how many values follow.

    ``letters`` is its other form, of one dash.
    """

    engine: Engine
    name: str
    shortest: str
    values: int
    why: str
    letters: str | None = None


_KV = "would connect to a peer; results then exclude the cost of moving the KV cache"
_TRACE = "would mix the sister's requests into production's traces"
_KEY = "a secret on the command line; the isolated copy needs no key"
_LORA = "would register with a controller"
_TLS = "the copy is asked by plain HTTP, inside its own container"
_LOOPBACK = "nobody outside the pod can reach it, whatever labels or addresses they know"

JOINING = (
    EngineOption(engine=VLLM, name="--kv-transfer-config", shortest="--kv-t", values=1, why=_KV),
    EngineOption(engine=VLLM, name="--kv-events-config", shortest="--kv-e", values=1, why=_KV),
    EngineOption(engine=VLLM, name="--ec-transfer-config", shortest="--ec-t", values=1, why=_KV),
    EngineOption(
        engine=VLLM, name="--otlp-traces-endpoint", shortest="--otlp", values=1, why=_TRACE
    ),
    EngineOption(
        engine=VLLM,
        name="--collect-detailed-traces",
        shortest="--collect-d",
        values=1,
        why="needs --otlp-traces-endpoint, which is removed",
    ),
    EngineOption(engine=VLLM, name="--api-key", shortest="--api-k", values=SEVERAL, why=_KEY),
    EngineOption(engine=SGLANG, name="--api-key", shortest="--api-k", values=1, why=_KEY),
    EngineOption(
        engine=SGLANG,
        name="--disaggregation-mode",
        shortest="--disaggregation-m",
        values=1,
        why=_KV,
    ),
    EngineOption(
        engine=SGLANG,
        name="--disaggregation-transfer-backend",
        shortest="--disaggregation-t",
        values=1,
        why=_KV,
    ),
    EngineOption(
        engine=SGLANG,
        name="--disaggregation-bootstrap-port",
        shortest="--disaggregation-b",
        values=1,
        why=_KV,
    ),
    EngineOption(
        engine=SGLANG,
        name="--disaggregation-ib-device",
        shortest="--disaggregation-i",
        values=1,
        why=_KV,
    ),
    EngineOption(engine=SGLANG, name="--enable-lmcache", shortest="--enable-lm", values=0, why=_KV),
    EngineOption(
        engine=SGLANG,
        name="--hicache-storage-backend",
        shortest="--hicache-storage-b",
        values=1,
        why=_KV,
    ),
    EngineOption(engine=SGLANG, name="--kv-events-config", shortest="--kv-e", values=1, why=_KV),
    EngineOption(
        engine=SGLANG, name="--enable-trace", shortest="--enable-tra", values=0, why=_TRACE
    ),
    EngineOption(
        engine=SGLANG, name="--oltp-traces-endpoint", shortest="--oltp", values=1, why=_TRACE
    ),
    EngineOption(
        engine=SGLANG, name="--otlp-traces-endpoint", shortest="--otlp", values=1, why=_TRACE
    ),
    EngineOption(
        engine=TRTLLM,
        name="--metadata-server-config-file",
        shortest="--metadata",
        values=1,
        why=_LORA,
    ),
    EngineOption(engine=TRTLLM, name="--server-role", shortest="--server-r", values=1, why=_LORA),
)

TRANSPORT = tuple(
    EngineOption(engine=engine, name=name, shortest=name, values=values, why=_TLS)
    for engine, name, values in (
        (VLLM, "--ssl-keyfile", 1),
        (VLLM, "--ssl-certfile", 1),
        (VLLM, "--ssl-ca-certs", 1),
        (VLLM, "--ssl-cert-reqs", 1),
        (VLLM, "--ssl-ciphers", 1),
        (VLLM, "--enable-ssl-refresh", 0),
        (VLLM, "--uds", 1),
        (SGLANG, "--ssl-keyfile", 1),
        (SGLANG, "--ssl-certfile", 1),
        (SGLANG, "--ssl-ca-certs", 1),
        (SGLANG, "--ssl-keyfile-password", 1),
        (SGLANG, "--enable-ssl-refresh", 0),
    )
)
HOST = tuple(
    EngineOption(engine=engine, name="--host", shortest="--ho", values=1, why=_LOOPBACK)
    for engine in (VLLM, SGLANG, TRTLLM)
)
PORT = tuple(
    EngineOption(
        engine=engine,
        name="--port",
        shortest="--por",
        values=1,
        why="stated, so that requests find it whatever a variable or a file says",
    )
    for engine in (VLLM, SGLANG, TRTLLM)
)
DEFAULT_PORTS = {VLLM: 8000, SGLANG: 30000, TRTLLM: 8000}

_GROUP = "the server is one rank of a group"
GROUP = (
    EngineOption(
        engine=VLLM,
        name="--data-parallel-address",
        shortest="--data-parallel-a",
        values=1,
        why=_GROUP,
        letters="-dpa",
    ),
    # One server of several behind a balancer: it waits for the others, or joins them.
    *(
        EngineOption(
            engine=VLLM,
            name=f"--data-parallel-{name}",
            shortest=f"--data-parallel-{shortest}",
            values=values,
            why=_GROUP,
            letters=letters,
        )
        for name, shortest, values, letters in (
            ("rank", "ra", 1, "-dpn"),
            ("start-rank", "st", 1, "-dpr"),
            ("external-lb", "e", 0, "-dpe"),
            ("hybrid-lb", "h", 0, "-dph"),
        )
    ),
    EngineOption(engine=VLLM, name="--headless", shortest="--headl", values=0, why=_GROUP),
    EngineOption(
        engine=VLLM, name="--nnodes", shortest="--nno", values=1, why=_GROUP, letters="-n"
    ),
    EngineOption(
        engine=VLLM, name="--node-rank", shortest="--node-r", values=1, why=_GROUP, letters="-r"
    ),
    EngineOption(
        engine=SGLANG,
        name="--remote-instance-weight-loader-seed-instance-ip",
        shortest="--remote-instance-weight-loader-seed-instance-i",
        values=1,
        why="takes its weights out of a running server's memory",
    ),
    EngineOption(engine=SGLANG, name="--nccl-init-addr", shortest="--nccl-i", values=1, why=_GROUP),
    EngineOption(engine=SGLANG, name="--nnodes", shortest="--nno", values=1, why=_GROUP),
    EngineOption(engine=SGLANG, name="--node-rank", shortest="--node-r", values=1, why=_GROUP),
    EngineOption(
        engine=SGLANG, name="--dist-init-addr", shortest="--dist-init", values=1, why=_GROUP
    ),
)

EXECUTOR = EngineOption(
    engine=VLLM,
    name="--distributed-executor-backend",
    shortest="--distributed-e",
    values=1,
    why="with Ray the kernels are launched by children of the raylet, not of the server",
)
PROFILER = EngineOption(
    engine=VLLM,
    name="--profiler-config",
    shortest="--profiler",
    values=1,
    why="without it /start_profile answers 404 and the window never opens",
)
MEMORY = (
    EngineOption(
        engine=VLLM,
        name="--gpu-memory-utilization",
        shortest="--gpu-m",
        values=1,
        why="ncu saves and restores all memory that a kernel can write, for each pass",
    ),
    EngineOption(
        engine=SGLANG,
        name="--mem-fraction-static",
        shortest="--mem-f",
        values=1,
        why="ncu saves and restores all memory that a kernel can write, for each pass",
    ),
    EngineOption(
        engine=TRTLLM,
        name="--kv-cache-free-gpu-memory-fraction",
        shortest="--kv-cache-free",
        values=1,
        why="ncu saves and restores all memory that a kernel can write, for each pass",
    ),
)


def spelled(option: EngineOption) -> str:
    """The option as its engine spells it: TensorRT-LLM uses underscores."""
    if option.engine is TRTLLM:
        return "--" + option.name[2:].replace("-", "_")
    return option.name
