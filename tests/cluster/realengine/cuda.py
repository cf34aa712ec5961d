"""The three things of CUDA that a capture needs, for a vLLM that is built without CUDA.

vLLM loads this as one of its general plugins, in every process. Under the stand-in profiler
(STANDIN_WINDOW is set) it lets the CUDA profiler be configured, lets ``cudaProfilerStart`` and
``cudaProfilerStop``, which vLLM calls through ``torch.cuda.profiler``, open and close the
stand-in's window, and notes a kernel launch for each call of a layer of the model while the window
is open. NVTX ranges do nothing. Without the stand-in it changes nothing: that vLLM is as it was
installed.

What is real: the route, the way of the call through API server, engine core and worker, which
layers run, how often and when. What is not: no kernel has that name here, none is replayed.
"""

from __future__ import annotations

import os
from pathlib import Path

# The kernel that a GPU would run for a layer, by the layer's class in vLLM.
KERNELS = {
    "RMSNorm": "void vllm::rms_norm_kernel<__nv_bfloat16>"
    "(__nv_bfloat16*, const __nv_bfloat16*, float, int)",
    "SiluAndMul": "void vllm::act_and_mul_kernel<__nv_bfloat16>"
    "(__nv_bfloat16*, const __nv_bfloat16*, int)",
    "QKVParallelLinear": "nvjet_tst_64x8_64x16_4x1_v_bz_TNT",
}


def register() -> None:
    """Stand in for CUDA in this process, if the stand-in profiler watches it."""
    folder = os.environ.get("STANDIN_WINDOW")
    if folder is None:
        return
    import torch
    import torch.cuda.nvtx
    import torch.cuda.profiler
    from vllm.profiler import wrapper

    window, launches = Path(folder, "open"), Path(folder, "launches")

    def note(layer: torch.nn.Module, *_: object) -> None:
        kernel = KERNELS.get(type(layer).__name__)
        if kernel is not None and window.exists():
            with launches.open("a") as log:
                log.write(f"{kernel}\n")

    # The build for CPUs refuses `--profiler-config.profiler=cuda` when its worker starts.
    kinds = wrapper._SUPPORTED_PROFILER_KINDS
    kinds["cpu"] = frozenset((*kinds["cpu"], "cuda"))
    torch.cuda.profiler.start = window.touch
    torch.cuda.profiler.stop = lambda: window.unlink(missing_ok=True)
    torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = lambda *_: None
    torch.nn.modules.module.register_module_forward_hook(note)
