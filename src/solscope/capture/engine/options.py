"""The servers' own options: full names, which are switches, which take several values.

Names are without dashes; an underscore equals a dash. From the engines' documented command lines
(vLLM 0.6 to 0.32, SGLang 0.4 to 0.5, trtllm-serve 1.x). The lists serve to complete abbreviations
and to tell switches from options that take a value; an unlisted option is kept as written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """One engine's options. ``short`` maps one-dash names and twins to full names."""

    valued: frozenset[str]
    switches: frozenset[str]
    several: frozenset[str] = frozenset()
    short: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Every full name."""
        return self.valued | self.switches

    def full_name(self, written: str) -> tuple[str, str | None]:
        """The full name of an option, and a complaint where it could be several.

        >>> VLLM.full_name("gpu-memory-util")
        ('gpu-memory-utilization', None)
        """
        name = written.replace("_", "-")
        if name in self.short:
            return self.short[name], None
        if name in self.names or not name:
            return name, None
        if name.startswith("no-") and name[3:] in self.switches:
            return name, None
        candidates = sorted(n for n in self.names if n.startswith(name))
        if len(candidates) == 1:
            return candidates[0], None
        if candidates:
            return name, f"--{written} could be any of --{', --'.join(candidates)}"
        return name, None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VLLM = OptionTable(
    valued=_words(
        """
        model host port uds api-key lora-modules prompt-adapters chat-template uvicorn-log-level
        response-role ssl-keyfile ssl-certfile ssl-ca-certs ssl-cert-reqs root-path middleware
        tool-call-parser tool-parser-plugin reasoning-parser max-log-len log-config-file config
        allowed-origins allowed-methods allowed-headers api-server-count served-model-name
        tokenizer tokenizer-mode task runner convert dtype seed
        hf-config-path allowed-local-media-path revision code-revision rope-scaling rope-theta
        tokenizer-revision max-model-len quantization max-seq-len-to-capture max-logprobs
        hf-token hf-overrides override-neuron-config override-pooler-config logits-processors
        generation-config override-generation-config model-impl load-format download-dir
        model-loader-extra-config ignore-patterns pt-load-map-location guided-decoding-backend
        structured-outputs-config distributed-executor-backend pipeline-parallel-size
        tensor-parallel-size data-parallel-size data-parallel-rank data-parallel-start-rank
        data-parallel-size-local data-parallel-address data-parallel-rpc-port
        data-parallel-backend decode-context-parallel-size prefill-context-parallel-size
        nnodes node-rank master-addr master-port
        eplb-config num-redundant-experts max-parallel-loading-workers worker-cls
        worker-extension-cls all2all-backend expert-placement-strategy
        block-size gpu-memory-utilization kv-cache-memory-bytes swap-space kv-cache-dtype
        num-gpu-blocks-override prefix-caching-hash-algo cpu-offload-gb
        mamba-cache-dtype mamba-ssm-cache-dtype mamba-block-size kv-offloading-size
        kv-offloading-backend limit-mm-per-prompt media-io-kwargs mm-processor-kwargs
        mm-processor-cache-gb mm-encoder-tp-mode max-loras max-lora-rank lora-extra-vocab-size
        lora-dtype max-cpu-loras speculative-config
        num-speculative-tokens speculative-model otlp-traces-endpoint collect-detailed-traces
        show-hidden-metrics-for-version max-num-batched-tokens max-num-seqs
        max-num-partial-prefills max-long-partial-prefills long-prefill-token-threshold
        num-lookahead-slots scheduling-policy scheduler-cls num-scheduler-steps
        compilation-config optimization-level kv-transfer-config kv-events-config
        ec-transfer-config additional-config attention-backend attention-config profiler-config
        device cuda-graph-sizes cudagraph-capture-sizes max-cudagraph-capture-size
        structured-outputs-backend stream-interval numa-bind-nodes moe-backend
        shutdown-timeout performance-mode
        """
    ),
    switches=_words(
        """
        trust-remote-code enable-prefix-caching enable-chunked-prefill enforce-eager
        enable-expert-parallel enable-eplb enable-dbo disable-custom-all-reduce
        ray-workers-use-nsight disable-sliding-window disable-cascade-attn skip-tokenizer-init
        enable-prompt-embeds disable-async-output-proc async-scheduling enable-sleep-mode
        calculate-kv-scales enable-lora enable-lora-bias fully-sharded-loras disable-log-stats
        disable-log-requests enable-log-requests enable-log-outputs log-requests
        disable-uvicorn-access-log allow-credentials enable-ssl-refresh
        return-tokens-as-token-ids enable-auto-tool-choice enable-request-id-headers
        enable-force-include-usage enable-server-load-tracking disable-fastapi-docs headless
        disable-frontend-multiprocessing data-parallel-hybrid-lb data-parallel-external-lb
        disable-hybrid-kv-cache-manager enable-layerwise-nvtx-tracing use-tqdm-on-load
        kv-sharing-fast-prefill disable-mm-preprocessor-cache interleave-mm-strings
        disable-nccl-for-dp-synchronization enable-mfu-metrics kv-cache-metrics grpc numa-bind
        enable-reasoning enable-return-routed-experts enable-tokenizer-info-endpoint
        skip-mm-profiling enable-prompt-tokens-details disable-chunked-mm-input
        """
    ),
    several=_words(
        "served-model-name lora-modules prompt-adapters middleware ignore-patterns "
        "cuda-graph-sizes cudagraph-capture-sizes logits-processors"
    ),
    short={
        "tp": "tensor-parallel-size",
        "pp": "pipeline-parallel-size",
        "dp": "data-parallel-size",
        "dpn": "data-parallel-rank",
        "dpl": "data-parallel-size-local",
        "dpa": "data-parallel-address",
        "dpp": "data-parallel-rpc-port",
        "dpb": "data-parallel-backend",
        "dcp": "decode-context-parallel-size",
        "pcp": "prefill-context-parallel-size",
        "ep": "enable-expert-parallel",
        "q": "quantization",
        "cc": "compilation-config",
        "O": "optimization-level",
        "ac": "attention-config",
        "asc": "api-server-count",
        "sc": "speculative-config",
        "n": "nnodes",
        "r": "node-rank",
    },
)

SGLANG = OptionTable(
    valued=_words(
        """
        model-path tokenizer-path tokenizer-mode load-format model-loader-extra-config revision
        host port grpc-port api-key admin-api-key served-model-name chat-template dtype
        quantization quantization-param-path kv-cache-dtype context-length device
        mem-fraction-static max-running-requests max-total-tokens chunked-prefill-size
        max-prefill-tokens schedule-policy schedule-conservativeness page-size
        tensor-parallel-size pipeline-parallel-size data-parallel-size expert-parallel-size
        dist-init-addr nccl-init-addr nnodes node-rank stream-interval random-seed log-level
        watchdog-timeout dist-timeout download-dir base-gpu-id gpu-id-step attention-backend
        prefill-attention-backend decode-attention-backend sampling-backend
        grammar-backend mm-attention-backend speculative-algorithm
        speculative-draft-model-path speculative-num-steps speculative-eagle-topk
        speculative-num-draft-tokens speculative-attention-mode moe-a2a-backend
        moe-runner-backend deepep-mode moe-dense-tp-size ep-num-redundant-experts cuda-graph-max-bs
        cuda-graph-bs torch-compile-max-bs tool-call-parser reasoning-parser
        json-model-override-args lora-paths max-loras-per-batch max-lora-rank lora-backend
        disaggregation-mode disaggregation-transfer-backend disaggregation-bootstrap-port
        disaggregation-ib-device load-balance-method hicache-ratio hicache-size
        hicache-write-policy hicache-storage-backend config nsa-prefill-backend
        nsa-decode-backend fp8-gemm-backend kv-events-config
        """
    ),
    switches=_words(
        """
        trust-remote-code is-embedding skip-tokenizer-init enable-dp-attention enable-metrics
        enable-mixed-chunk disable-cuda-graph disable-cuda-graph-padding disable-radix-cache
        disable-overlap-schedule disable-custom-all-reduce enable-torch-compile
        enable-profile-cuda-graph enable-nccl-nvls enable-symm-mem enable-mscclpp
        enable-ep-moe enable-deepep-moe enable-eplb enable-two-batch-overlap enable-p2p-check
        enable-hierarchical-cache enable-lora enable-memory-saver log-requests
        show-time-cost enable-layerwise-nvtx-marker enable-multimodal
        disable-shared-experts-fusion disable-chunked-prefix-cache allow-auto-truncate
        enable-deterministic-inference enable-nan-detection skip-server-warmup
        enable-flashinfer-allreduce-fusion enable-single-batch-overlap enable-dp-lm-head
        """
    ),
    several=_words("lora-paths cuda-graph-bs"),
    short={
        "model": "model-path",
        "tp": "tensor-parallel-size",
        "tp-size": "tensor-parallel-size",
        "pp": "pipeline-parallel-size",
        "pp-size": "pipeline-parallel-size",
        "dp": "data-parallel-size",
        "dp-size": "data-parallel-size",
        "ep": "expert-parallel-size",
        "ep-size": "expert-parallel-size",
    },
)

TENSORRT_LLM = OptionTable(
    valued=_words(
        """
        tokenizer host port backend log-level max-beam-width max-batch-size max-num-tokens
        max-seq-len tensor-parallel-size pipeline-parallel-size expert-parallel-size
        cluster-size gpus-per-node kv-cache-free-gpu-memory-fraction num-postprocess-workers
        extra-llm-api-options config reasoning-parser tool-parser metadata-server-config-file
        server-role custom-module-dirs chat-template kv-cache-dtype model served-model-name
        config-file moe-expert-parallel-size
        """
    ),
    switches=_words(
        "trust-remote-code fail-fast-on-attention-window-too-large enable-chunked-prefill "
        "otlp-traces"
    ),
    short={
        "tp-size": "tensor-parallel-size",
        "tp": "tensor-parallel-size",
        "pp-size": "pipeline-parallel-size",
        "pp": "pipeline-parallel-size",
        "ep-size": "expert-parallel-size",
        "ep": "expert-parallel-size",
        "free-gpu-memory-fraction": "kv-cache-free-gpu-memory-fraction",
        "c": "config",
    },
)

_DYNAMO = "endpoint is-prefill-worker connector migration-limit dyn-tool-call-parser"

TABLES: Mapping[str, OptionTable] = {
    "vllm": VLLM,
    "dynamo-vllm": OptionTable(
        valued=VLLM.valued | _words(_DYNAMO),
        switches=VLLM.switches,
        several=VLLM.several,
        short=VLLM.short,
    ),
    "sglang": SGLANG,
    "dynamo-sglang": SGLANG,
    "tensorrt-llm": TENSORRT_LLM,
    "dynamo-trtllm": TENSORRT_LLM,
}
"""Engine name to its options; engines without a row are read as far as ``--name value`` goes."""
