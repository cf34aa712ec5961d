"""The server's command: do we know it, can a window be opened, what starts its workers?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from solscope.capture.preflight.view import container_name, found, inside_text, release, setting
from solscope.model.cluster import EngineArgs, WorkloadSnapshot
from solscope.model.finding import Finding, Severity

_ENGINE_CORE_SINCE = (0, 8)  # the release that made the V1 engine the default
_ASKED_BY_EXEC = "read /proc/1/cmdline in the live container (--exec)"


def findings(workload: WorkloadSnapshot) -> Iterator[Finding]:
    """The command and its form, the profiler endpoint, worker start, graphs."""
    server = workload.server
    words = (*server.command, *server.args) if server is not None else ()
    started = f"{' '.join(words)} {inside_text(workload, 'cmdline') or ''}"
    if re.search(r"ipykernel|jupyter", started, re.IGNORECASE):
        yield found(
            "notebook-target",
            Severity.BLOCKS,
            container_name(workload),
            "the container runs a notebook: ncu cannot start it anew, and the run would hang",
            "put the work into a script and profile that",
            "ipykernel or jupyter in the command",
        )
    engine = workload.engine
    if engine is None:
        return
    yield from _command(workload, engine)
    yield from _wrapped(workload, engine)
    if engine.engine is None:
        return
    yield from _window(workload, engine)
    yield from _workers(workload, engine)
    yield from _graphs(workload, engine)


def _command(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    server = workload.server
    image = server.image if server else "unknown"
    if engine.engine is None:
        yield found(
            "server-command-unknown",
            Severity.WARNING,
            container_name(workload),
            "no inference server was recognised in the container's command"
            if engine.form != "entrypoint"
            else "the object holds no command: the image's entrypoint starts the server",
            _ASKED_BY_EXEC + ", and give it to the sister with --server-command",
            f"image {image}",
        )
    elif engine.form == "entrypoint":
        yield found(
            "command-from-image",
            Severity.INFO if engine.engine == "vllm" else Severity.WARNING,
            container_name(workload),
            "the image's entrypoint starts the server; a wrapped command must repeat it",
            _ASKED_BY_EXEC + ", and give it to the sister with --server-command",
            f"image {image}",
            *engine.notes,
        )
    if engine.unresolved:
        yield found(
            "arguments-unresolved",
            Severity.INFO,
            container_name(workload),
            "parts of the server's command are filled in at start, so some flags are not known",
            _ASKED_BY_EXEC,
            *engine.unresolved[:6],
        )
    if engine.config_file and any("not known here" in note for note in engine.notes):
        yield found(
            "config-file-unread",
            Severity.INFO,
            container_name(workload),
            f"the server reads {engine.config_file}, which may set any flag",
            "give the ConfigMap with -f, or print the file in the live container",
            f"--config {engine.config_file}",
        )


def _wrapped(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    profiler = next((note for note in engine.notes if "already started under" in note), None)
    if profiler is not None:
        yield found(
            "already-under-a-profiler",
            Severity.BLOCKS,
            container_name(workload),
            "the server is started by a profiler already; two of them cannot share a process",
            "take the profiler off the template, or profile another workload",
            profiler,
        )


def _window(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    if engine.engine not in ("vllm", "dynamo-vllm", "sglang", "dynamo-sglang"):
        return
    where = container_name(workload)
    switch = _vllm_switch(engine) if "vllm" in engine.engine else "an NVTX range or a skip count"
    if engine.profiler == "torch":
        source = setting(workload, "VLLM_TORCH_PROFILER_DIR") or setting(
            workload, "SGLANG_TORCH_PROFILER_DIR"
        )
        yield found(
            "cudaProfilerStart-never-called",
            Severity.WARNING,
            where,
            "/start_profile starts the torch profiler here, not cudaProfilerStart: with "
            "--profile-from-start off ncu would wait for ever and record nothing",
            f"in the sister: unset the torch profiler; open the window by {switch}",
            source.shown if source else "--profiler-config names torch",
        )
    elif engine.profiler == "cuda":
        yield found(
            "window-by-endpoint",
            Severity.INFO,
            where,
            "/start_profile calls cudaProfilerStart: it can open the window after warm-up",
            "use --profile-from-start off",
            "the CUDA profiler is configured",
        )
    else:
        yield found(
            "profiler-endpoint-off",
            Severity.INFO,
            where,
            "no profiler is configured, so /start_profile answers 404",
            f"in the sister, open the window by {switch}",
            "neither the option nor the variable is set",
        )


def _vllm_switch(engine: EngineArgs) -> str:
    """How this release is told to call cudaProfilerStart (kubernetes truth, 5.1)."""
    known = release(engine.version.value)
    if known is None:
        return "--profiler-config with profiler cuda (0.13 and newer), else a skip count"
    if known >= (0, 13):
        return "--profiler-config with profiler cuda"
    if known >= (0, 12):
        return "VLLM_TORCH_CUDA_PROFILE=1"
    return "a skip count or an NVTX range: this release has no CUDA profiler switch"


def _workers(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    method = setting(workload, "VLLM_WORKER_MULTIPROC_METHOD")
    several = (engine.gpus_per_replica or 1) > 1
    if method is not None and method.value == "fork":
        yield found(
            "use-spawn",
            Severity.WARNING,
            container_name(workload),
            "workers are forked: CUDA state that a profiler has set up does not survive a fork, "
            "and the profile is empty or the engine fails",
            "set VLLM_WORKER_MULTIPROC_METHOD=spawn in the sister",
            f"{method.shown} ({method.where})",
        )
    elif method is None and "vllm" in (engine.engine or "") and several:
        yield found(
            "use-spawn",
            Severity.INFO,
            container_name(workload),
            "how workers are started is not set; vLLM's default is fork",
            "set VLLM_WORKER_MULTIPROC_METHOD=spawn in the sister",
            "VLLM_WORKER_MULTIPROC_METHOD is not set",
        )
    known = release(engine.version.value)
    if "vllm" in (engine.engine or "") and (known is None or known >= _ENGINE_CORE_SINCE):
        yield _process(workload)


def _process(workload: WorkloadSnapshot) -> Finding:
    """Which process launches kernels (kubernetes truth, 5.2)."""
    single = setting(workload, "VLLM_ENABLE_V1_MULTIPROCESSING")
    alone = single is not None and single.value == "0"
    return found(
        "kernels-in-one-process" if alone else "kernels-in-child-process",
        Severity.INFO,
        container_name(workload),
        "the engine runs inside the server's own process"
        if alone
        else "the server's process launches no kernels: EngineCore and the workers do",
        "--target-processes all, always; read the report of the process that has kernels",
        f"{single.shown} ({single.where})" if single and alone else _tree(workload),
    )


def _tree(workload: WorkloadSnapshot) -> str:
    """The engine's processes as they run, else what is known of the release."""
    processes = workload.inside.processes if workload.inside else ()
    titles = [f"{p.name} (pid {p.pid})" for p in processes if p.name.startswith("VLLM::")]
    return f"running: {', '.join(titles[:6])}" if titles else "vLLM's process tree since 0.8"


def _graphs(workload: WorkloadSnapshot, engine: EngineArgs) -> Iterator[Finding]:
    if engine.is_eager:
        return
    yield found(
        "cuda-graphs",
        Severity.INFO,
        container_name(workload),
        "decode is replayed from CUDA graphs"
        + ("" if engine.is_eager is False else " unless eager mode was chosen elsewhere"),
        "--graph-profiling node shows each kernel; what was captured before the window has no "
        "NVTX range of its own",
        "no eager mode on the command line",
    )
