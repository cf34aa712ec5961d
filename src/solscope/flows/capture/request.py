"""What a capture is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from solscope.errors import UsageError
from solscope.flows.request import option
from solscope.model.capture import Limits, Traffic

# vLLM takes 8k for 8000 and 8K for 8192; SGLang and TensorRT-LLM take plain numbers.
_LONGEST = re.compile(
    r"--(?:max[-_]model[-_]len|context[-_]length|max[-_]seq[-_]len)(?:=|\s+)[\"']?(\d+)([kKmM]?)(?![\w.])"
)
_UNITS = {"": 1, "k": 1000, "K": 1 << 10, "m": 10**6, "M": 1 << 20}
_NO_COMPLETIONS = re.compile(
    r"--(?:runner(?:=|\s+)pooling|is[-_]embedding|"
    r"task(?:=|\s+)(?:embed|embedding|classify|score|reward|transcription))\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """Run a plan on an isolated copy of a workload and keep the evidence in a bundle.

    Without --yes nothing is made: every object and every command is printed. With it: the copy
    is created, warmed up, profiled, its reports are fetched and verified, everything made is
    deleted, and the bundle is sealed. The target itself is only read. --resume goes on after a
    crash; --cleanup removes what an experiment left, without any local file.
    """

    workload: str | None = option(
        "The target, as kind/name; by default the plan's.", default=None, positional=True
    )
    plan: Path | None = option("The plan, made by `solscope plan ... -o plan.json`.", default=None)
    output: Path | None = option(
        "The bundle: a new folder, or an open bundle. "
        "Default: experiments/artifacts/TARGET/EXPERIMENT.",
        default=None,
        alias="-o",
    )
    yes: bool = option("Really do it.", default=False)
    resume: Path | None = option(
        "Go on with this bundle's run, or clean up after it.", default=None
    )
    cleanup: str | None = option("Remove all objects of this experiment.", default=None)
    namespace: str | None = option(
        "Namespace of the target; by default the context's.", default=None, alias="-n"
    )
    context: str | None = option("kubeconfig context; by default the current one.", default=None)
    container: str | None = option("Which container to profile.", default=None)
    server_command: str | None = option(
        "The server's whole command line, where only its image knows it.", default=None
    )
    exec: bool = option("Read that command line in the target's running container.", default=False)
    tools: Literal["init-container", "image-volume", "in-image"] = option(
        "How ncu gets into the pod.", default="init-container"
    )
    tools_image: str | None = option("Image that ncu is taken from.", default=None)
    ncu: str | None = option("Where ncu lies in the tools image.", default=None)
    experiment: str | None = option(
        "Id of the experiment, a label's value; by default a new one.", default=None
    )
    label: tuple[str, ...] = option(
        "A further label for the copy, KEY=VALUE. May be repeated.", default=()
    )
    accept: tuple[str, ...] = option(
        "Allow this object (kind/name) to match the copy; none that sends requests. "
        "May be repeated.",
        default=(),
    )
    sys_admin: bool = option("Add CAP_SYS_ADMIN to the copy.", default=False)
    read_only_claims: bool = option("Mount volume claims read-only.", default=False)
    without: tuple[str, ...] = option(
        "Leave this container or init container out of the copy. May be repeated.", default=()
    )
    deadline: int | None = option(
        "Seconds after which the cluster ends the copy; by default later than all limits below.",
        default=None,
    )
    hold: int = option("Seconds for which results stay after the server ended.", default=600)
    port: int | None = option("The server's port; by default from its command.", default=None)
    health: str = option("The engine's endpoint that answers 200 when ready.", default="/health")
    isl: int = option("Input length of a request, in tokens.", default=1024)
    osl: int = option("Output length of a request, in tokens.", default=128)
    concurrency: int = option("Requests at a time.", default=8)
    pending_limit: float = option("Seconds to wait for a GPU and images.", default=600.0)
    ready_limit: float = option("Seconds to wait for the server.", default=1800.0)
    warm_up_limit: float = option("Seconds to wait for steady throughput.", default=600.0)
    window_limit: float | None = option(
        "Seconds of the window; by default three times the plan's estimate, 900 at least.",
        default=None,
    )
    finish_limit: float = option("Seconds for ncu to write its report.", default=300.0)
    cleanup_limit: float = option("Seconds to wait until all is gone.", default=180.0)
    perfbench: Path | None = option(
        "An inference_perfbench_v1.json to copy into the bundle with kernel_internals filled in.",
        default=None,
    )
    no_seal: bool = option("Leave the bundle open.", default=False)
    format: Literal["table", "json"] = option("Output format.", default="table")


def limits(request: CaptureRequest, planned_s: float | None) -> Limits:
    """The limits of a request; ``planned_s`` is the plan's estimate of the whole capture."""
    window = request.window_limit
    if window is None:
        window = max(900.0, 3 * (planned_s or 0.0))
    return Limits(
        schedule_s=request.pending_limit,
        ready_s=request.ready_limit,
        warm_up_s=request.warm_up_limit,
        window_s=window,
        finish_s=request.finish_limit,
        cleanup_s=request.cleanup_limit,
    )


def traffic(request: CaptureRequest) -> Traffic:
    """The requests that the server is sent."""
    return Traffic(isl=request.isl, osl=request.osl, concurrency=request.concurrency)


def check_traffic(request: CaptureRequest, command: Sequence[str]) -> None:
    """Raise UsageError for requests that the server would refuse once it has loaded its model."""
    text = " ".join(command)
    other = _NO_COMPLETIONS.search(text)
    if other is not None:
        raise UsageError(
            f"the server answers no completions: {other[0]}",
            where="its command",
            hint="a capture fills its window with /v1/completions; `solscope sister` makes a copy "
            "that you send other requests to",
        )
    longest = _LONGEST.findall(text)
    most = int(longest[-1][0]) * _UNITS[longest[-1][1]] if longest else None
    if most is not None and request.isl + request.osl > most:
        raise UsageError(
            f"--isl {request.isl} and --osl {request.osl} are {request.isl + request.osl} tokens, "
            f"and the server takes {most}",
            where="its command",
            hint="give shorter ones",
        )
