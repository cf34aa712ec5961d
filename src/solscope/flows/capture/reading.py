"""What came home, read: is it usable, what does it say, and if nothing came, why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from solscope.analysis import frontier
from solscope.capture import diagnosis
from solscope.capture.diagnosis import Evidence
from solscope.capture.execution import perfbench
from solscope.capture.execution.journal import Facts
from solscope.capture.execution.run import Run
from solscope.capture.planning import filters
from solscope.errors import CaptureError, ReportError, SolscopeError
from solscope.evidence import bundle as bundles
from solscope.evidence import files
from solscope.flows import analyze as analysis_flow
from solscope.flows.capture import context
from solscope.flows.read import counters
from solscope.flows.world import World
from solscope.model.capture import (
    CaptureResult,
    CollectedFile,
    PodState,
    WorkloadState,
)
from solscope.model.diagnosis import Diagnosis
from solscope.model.evidence import Artifact
from solscope.model.finding import Finding, Severity
from solscope.model.kernel import KernelTotals
from solscope.model.plan import CapturePlan, NameBase
from solscope.model.report import Dim3, KernelLaunch, Report
from solscope.render import diagnosis as diagnosis_page
from solscope.render import findings, ncu_pages
from solscope.reports import formats

DIAGNOSIS = "diagnosis.md"
_TOOLS_CONTAINER, _TOOLS_VOLUME = "solscope-tools", "solscope-tools"


def reports(made: Run) -> tuple[Report, ...]:
    """The collected reports. Raises ReportError."""
    folder = made.journal.bundle.folder
    paths = [str(folder / file["artifact"]["path"]) for file in _files(made)]
    return tuple(counters(formats.read(path)) for path in paths)


def _files(made: Run) -> Iterator[Mapping[str, Any]]:
    """What every stage brought home."""
    for stage in made.stages:
        yield from stage.answer("collect")["files"]


def inspect(made: Run) -> Facts:
    """Whether the reports are usable.

    Raises CaptureError for one that is cut, or without kernels, the wanted kernels or metrics.
    """
    try:
        found = reports(made)
    except ReportError as error:
        raise CaptureError(
            f"the report cannot be read: {error.what}", where=error.where, hint=error.hint
        ) from error
    for report in found:
        if not report.complete:
            raise CaptureError(
                "the report is cut: ncu did not finish writing it",
                where=report.provenance.path,
                hint="give a longer --finish-limit and look at the room in the results' volume",
            )
    launches = [launch for report in found for launch in report.launches]
    if not launches:
        raise CaptureError(
            "the reports hold no kernel",
            where=str(made.journal.bundle.folder / bundles.PROFILES),
            hint="the diagnosis beside this says why",
        )
    wanted = [launch for launch in launches if _is_wanted(launch, made)]
    if not wanted:
        names = ", ".join(sorted({launch.name for launch in launches})[:5])
        raise CaptureError(
            f"none of the {len(launches)} launches is of {made.plan.launches.kernel}: {names}",
            hint="the report is of another capture, or its names are written otherwise",
        )
    missing = _missing(made, wanted)
    asked = made.plan.metrics.metrics
    if asked and len(missing) == len(asked):
        raise CaptureError(
            f"none of the {len(asked)} planned metrics has a value",
            hint="`solscope diagnose` on this bundle says why counters were not read",
        )
    return {
        "launches": len(launches),
        "wanted": len(wanted),
        "kernels": sorted({launch.name for launch in wanted}),
        "missing_kernels": list(_absent(made, wanted)),
        "missing_metrics": missing,
        "other_gpus": other_gpus(made.plan, found),
    }


def other_gpus(plan: CapturePlan, found: Sequence[Report]) -> list[str]:
    """The GPUs of reports that are of another compute capability than the planned chip."""
    names = {
        f"{device.name or 'a GPU without a name'} ({'.'.join(map(str, device.compute_capability))})"
        for report in found
        for device in report.devices
        if device.compute_capability is not None
        and plan.compute_capability is not None
        and ".".join(map(str, device.compute_capability)) != plan.compute_capability
    }
    return sorted(names)


def _is_wanted(launch: KernelLaunch, made: Run) -> bool:
    """Whether a launch passes the plan's filter."""
    launches = made.plan.launches
    return launches.kernel is None or _passes(launch, launches.kernel, launches.name_base)


def _absent(made: Run, launches: Sequence[KernelLaunch]) -> Iterator[str]:
    """Patterns of the plan that no launch passes, where it has several."""
    patterns = made.plan.launches.patterns
    for pattern in patterns if len(patterns) > 1 else ():
        kernel, base = filters.kernel_name((pattern,))
        if kernel is not None and not any(_passes(one, kernel, base) for one in launches):
            yield pattern


def _passes(launch: KernelLaunch, kernel: str, base: NameBase) -> bool:
    """Whether a launch passes a filter, by the name that ncu compares."""
    name = {
        NameBase.FUNCTION: launch.name,
        NameBase.DEMANGLED: launch.name_full,
        NameBase.MANGLED: launch.mangled or launch.name,
    }[base]
    if kernel.startswith("regex:"):
        return re.search(kernel.removeprefix("regex:"), name) is not None
    return name == kernel


def _missing(made: Run, launches: Sequence[KernelLaunch]) -> list[str]:
    """Planned metrics that no launch has a value or instances of."""
    return [
        name
        for name in made.plan.metrics.metrics
        if not any(name in launch.metrics or launch.metrics.instances(name) for launch in launches)
    ]


# -- kept beside the reports -----------------------------------------------------------------------


def keep(made: Run, world: World) -> None:
    """Write tables, observations, context and ``kernel_internals``; each a step."""
    step = made.journal.once
    step("tables", ("solscope", "read", bundles.PROFILES, "--format", "csv"), lambda: _tables(made))
    step("observe", ("solscope", "analyze", bundles.PROFILES), lambda: _observe(made))
    if _perfbench(made) is not None:
        step(
            "kernel-internals",
            ("solscope", "capture", "--perfbench", perfbench.FILE),
            lambda: _internals(made, world),
        )


def _tables(made: Run) -> Facts:
    """``*-raw.csv`` and ``*-sol.csv`` in ncu's own shapes, beside each report."""
    written = []
    for report in reports(made):
        path = Path(report.provenance.path)
        for suffix, lines in (
            ("raw", ncu_pages.raw_csv(report)),
            ("sol", ncu_pages.details_csv(report)),
        ):
            name = f"{path.stem}-{suffix}.csv"
            text = "".join(_ended(line) for line in lines)
            made.journal.bundle.write(f"{bundles.PROFILES}/{name}", text)
            written.append(_artifact(made, path.with_name(name)))
    return {"files": written}


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _artifact(made: Run, path: Path) -> Mapping[str, Any]:
    artifact = files.artifact(made.journal.bundle.folder, path)
    return {"path": artifact.path, "sha256": artifact.sha256, "size_bytes": artifact.size_bytes}


def _observe(made: Run) -> Facts:
    found = reports(made)
    bundle = made.journal.bundle
    context.write(made, found)
    analysis = analysis_flow.analyze(found)
    bundle.fill("findings/01-observations.md", findings.observations(analysis))
    bundle.fill("findings/02-mechanisms.md", findings.mechanisms(analysis))
    notes = [f"{found.fact}: {found.remedy}" for found in _shortfalls(made)]
    text = findings.summary(
        analysis,
        experiment=made.settings.experiment,
        lever=frontier.next_of(analysis.kernels),
        notes=notes,
    )
    bundle.fill("summary.md", text)
    return {"kernels": len(analysis.kernels)}


def _perfbench(made: Run) -> Path | None:
    """The benchmark result to fill in: the one in the bundle, else the one that was named."""
    own = made.journal.bundle.folder / perfbench.FILE
    if own.exists():
        return own
    return Path(made.settings.perfbench) if made.settings.perfbench else None


def _internals(made: Run, world: World) -> Facts:
    source = _perfbench(made)
    assert source is not None
    try:
        text = source.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CaptureError(f"cannot be read: {error}", where=str(source)) from error
    found = reports(made)
    per_kernel = _per_kernel([row.totals for row in analysis_flow.analyze(found).kernels])
    value = {
        "captured_at": world.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "method": made.plan.strategy.value,
        "sidecar_image": _tools_image(made),
        "vllm_pid": next((x.process_id for r in found for x in r.launches), None),
        "per_kernel": per_kernel,
    }
    goal = made.journal.bundle.folder / perfbench.FILE
    files.write(goal, perfbench.put(text, value, where=str(source)).encode())
    return {"file": _artifact(made, goal), "kernels": len(per_kernel)}


def _per_kernel(kernels: Sequence[KernelTotals]) -> Mapping[str, Mapping[str, Any]]:
    """By name, the longest of that name; others of it say their grid and block.

    Kernels that differ in neither, such as two types of one template, are numbered.
    """
    named: dict[str, Mapping[str, Any]] = {}
    for totals in kernels:
        key = totals.name
        if key in named:
            key = f"{key} [{_size(totals.key.grid)}, {_size(totals.key.block)}]"
        alike = sum(other == key or other.startswith(f"{key} #") for other in named)
        named[key if not alike else f"{key} #{alike + 1}"] = _internals_of(totals)
    return named


def _size(dim: Dim3 | None) -> str:
    return "?" if dim is None else "x".join(map(str, dim))


def _internals_of(totals: KernelTotals) -> Mapping[str, Any]:
    """What other tools read of a kernel; ``None`` is not measured."""
    return {
        "achieved_occupancy_pct": totals.achieved_occupancy_pct,
        "dram_throughput_pct_peak": totals.dram_pct,
        "sm_throughput_pct_peak": totals.sm_busy_pct,
        "regs_per_thread": totals.registers_per_thread,
        "smem_per_block_bytes": totals.smem_per_block_bytes,
        "block_limit_factor": ", ".join(totals.occupancy_limiter) or None,
    }


def _tools_image(made: Run) -> str | None:
    objects = made.sisters[0].objects
    spec = objects[-1]["spec"]["template"]["spec"] if objects else {}
    for container in spec.get("initContainers") or ():
        if container.get("name") == _TOOLS_CONTAINER:
            return str(container.get("image"))
    for volume in spec.get("volumes") or ():
        if volume.get("name") == _TOOLS_VOLUME and volume.get("image"):
            return str(volume["image"].get("reference"))
    return None


# -- when it failed ------------------------------------------------------------------------------


def diagnose(made: Run) -> str | None:
    """Why, from the logs and reports that are home: a page in the bundle and its first line."""
    folder = made.journal.bundle.folder
    evidence = [
        Evidence(name=name, path=folder / name)
        for stage in made.stages
        for name in stage.log_files
        if (folder / name).exists()
    ]
    readable: list[Report] = []
    for path in sorted((folder / bundles.PROFILES).glob("*.ncu-rep*")):
        if path.name.startswith(files.PART):
            continue  # cut by the network and not by ncu
        try:
            readable.append(counters(formats.read(str(path))))
        except SolscopeError:
            continue
    if not evidence and not readable:
        return None
    found: Diagnosis = diagnosis.diagnose(evidence, reports=readable)
    made.journal.bundle.write(DIAGNOSIS, diagnosis_page.markdown(found) + "\n")
    return found.summary


# -- the result ----------------------------------------------------------------------------------


def result(made: Run, after: WorkloadState) -> CaptureResult:
    """The result of a run that came to its end."""
    answers, settings = made.journal.answers, made.settings
    collected = tuple(
        CollectedFile(name=file["name"], artifact=Artifact(**file["artifact"]))
        for file in _files(made)
    )
    before = dict(answers["production-before"])
    pods = tuple(PodState(**pod) for pod in before.pop("pods"))
    return CaptureResult(
        experiment=settings.experiment,
        target=settings.workload,
        namespace=settings.namespace,
        is_dry_run=False,
        bundle=settings.output,
        objects=tuple(item for stage in made.stages for item in stage.sister.objects),
        done=tuple(made.journal.taken),
        files=collected,
        kernels=answers["inspect"]["launches"],
        before=WorkloadState(**before, pods=pods),
        after=after,
        findings=tuple(_shortfalls(made)),
    )


def _shortfalls(made: Run) -> Iterator[Finding]:
    """What was planned and did not come, though the capture is usable."""
    seen = made.journal.answers["inspect"]
    for stage in made.stages:
        told = stage.answer("profile")
        if told["kernels"] < told["wanted"]:
            yield Finding(
                code="fewer-launches",
                severity=Severity.WARNING,
                where=made.settings.output,
                fact=f"{told['kernels']} of {told['wanted']} planned launches of "
                f"{stage.plan.launches.kernel or 'any kernel'} within the window",
                remedy="give a longer --window-limit, or plan fewer launches",
            )
    if seen.get("other_gpus"):
        yield Finding(
            code="another-gpu",
            severity=Severity.WARNING,
            where=made.settings.output,
            fact=f"the copy ran on {', '.join(seen['other_gpus'])}, and the plan is for "
            f"{made.plan.chip} ({made.plan.compute_capability}): not the target's numbers",
            remedy="ask for the right to read nodes, so that the copy is bound to the target's GPU",
        )
    if seen["missing_kernels"]:
        yield Finding(
            code="kernels-absent",
            severity=Severity.WARNING,
            where=made.settings.output,
            fact=f"no launch of {', '.join(seen['missing_kernels'])} within the window",
            remedy="a timeline shows whether this workload launches them",
        )
    if seen["missing_metrics"]:
        names = ", ".join(seen["missing_metrics"])
        yield Finding(
            code="metrics-absent",
            severity=Severity.WARNING,
            where=made.settings.output,
            fact=f"planned metrics without a value: {names}",
            remedy="absent is not zero; `solscope diagnose` on this bundle may say why",
        )
