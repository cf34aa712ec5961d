"""What to say where a capture holds no kernels: launch calls prove that kernels ran.

Shared by the readers of timelines, so that all of them say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from solscope.model.finding import Absence, Issue, Severity


def explain(
    *,
    launches: int | None,
    graph_launches: int | None,
    graph_rows: int,
    said: Sequence[str],
    where: str,
) -> tuple[Issue, Absence]:
    """What to say where kernels are missing, by what the rest of the file shows.

    ``where`` says which table is empty or not there, ``said`` what the tool itself complained
    of. Never that no kernel ran: without launch calls that is not known.
    """
    if graph_rows:
        what = (
            f"{where}: the kernels ran inside CUDA graphs, which were recorded as {graph_rows} "
            f"whole replays"
        )
        remedy = "capture again with --cuda-graph-trace=node"
        code = "kernels-inside-graphs"
    elif launches or graph_launches:
        calls = _calls(launches, graph_launches)
        what = f"{where}, but launches exist: {calls}. The kernels ran and were not recorded"
        remedy = _remedy(graph_launches, said)
        code = "kernels-not-recorded"
    else:
        what = f"{where}, and no launch call is in the file: whether kernels ran is not known"
        remedy = (
            "capture GPU activities (nsys: --trace=cuda; torch: ProfilerActivity.CUDA), over a "
            "window in which the GPU works"
        )
        code = "kernels-not-recorded"
    return (
        Issue(code=code, severity=Severity.WARNING, what=what),
        Absence(field="kernels", reason=what, remedy=remedy),
    )


def graph_note(
    *, graph_launches: int | None, graph_rows: int, graph_kernels: int, kernels: int
) -> Issue | None:
    """What graph launches mean for the counts of kernels, ``None`` where they hide nothing.

    A framework's profiler records kernels of graphs without saying so: then there are more
    kernels than the launch calls explain, which the caller has to tell by ``graph_kernels``.
    """
    if graph_rows and kernels:
        replays = "1 replay" if graph_rows == 1 else f"{graph_rows} replays"
        what = (
            f"{replays} of CUDA graphs recorded as a whole beside single kernels: the kernels "
            "inside are in no count and no share"
        )
    elif not graph_launches or graph_kernels or graph_rows:
        return None
    else:
        what = (
            f"cudaGraphLaunch {graph_launches} calls: their kernels are not recorded singly, or "
            "not at all; counts of kernels are not those of executions"
        )
    return Issue(
        code="graphs-hide-kernels",
        severity=Severity.WARNING,
        what=f"{what} (nsys: --cuda-graph-trace=node)",
    )


def _calls(launches: int | None, graph_launches: int | None) -> str:
    parts = []
    if launches:
        parts.append(f"{launches} kernel launch calls")
    if graph_launches:
        parts.append(f"cudaGraphLaunch {graph_launches} calls")
    return ", ".join(parts)


def _remedy(graph_launches: int | None, said: Sequence[str]) -> str:
    causes = [f"{said[0]}"] if said else []
    if graph_launches:
        causes.append("kernels inside graphs need --cuda-graph-trace=node")
    causes += [
        "an nsys older than the driver (take one of the driver's generation)",
        "WSL2 or a virtual machine without GPU activity records",
        "a second CUPTI client in the process (CUDA_INJECTION64_PATH, a framework's profiler)",
    ]
    return "likely causes: " + "; ".join(causes)
