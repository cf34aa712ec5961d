"""Facts that follow from other facts by a little arithmetic. Each function adds what it can."""

from __future__ import annotations

import dataclasses
import re

from solscope.capture.diagnosis.knowledge import numbers_of
from solscope.capture.diagnosis.options import RELEASES
from solscope.capture.diagnosis.redaction import quote
from solscope.capture.diagnosis.scanning import Facts
from solscope.model.diagnosis import LogFact

SYS_ADMIN_BIT = 21  # linux/capability.h

# Kernels that wait for other ranks: collectives and expert-parallel exchange by their usual names.
COLLECTIVE = re.compile(
    r"nccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|multimem|deep_?ep"
    r"|internode|intranode|one_?shot_|two_?shot_|cross_device_reduce|symm_?mem|rccl"
    r"|::dispatch\b|::combine\b|barrier_all",
    re.IGNORECASE,
)


_REFUSALS = (
    "counter-permission",
    "status-insufficient-permissions",
    "cupti-insufficient-privileges",
)
_ENDS = (
    "profiling-done",
    "profiling-tail",
    "disconnected",
    "failed-to-profile",
    "error-occurred",
    "application-exit",
)


def derive(facts: Facts) -> None:
    """Add every derived fact. Order matters only where one builds on another."""
    for step in (
        _capabilities,
        _counter_gate,
        _progress,
        _overcome,
        _collectives,
        _versions,
        _chips,
        _sizes,
        _neighbours,
        _processes,
        _waiting,
        _device_memory,
        _window,
        _sessions,
        _missing_metrics,
        _ranks,
    ):
        step(facts)


def _add(facts: Facts, code: str, origin: LogFact, **fields: str) -> None:
    """A fact derived from ``origin``: it shows the line and the time of its origin."""
    if any(f.fields == fields for f in facts.all(code)):
        return
    facts.add(code, origin.where, origin.text, fields, is_timed=origin.is_timed)
    facts.by_code[code][-1] = LogFact(
        code=code,
        where=origin.where,
        text=origin.text,
        fields=fields,
        order=origin.order,
        is_timed=origin.is_timed,
    )


def _counter_gate(facts: Facts) -> None:
    """Which way the driver's counter gate stands on the node that the pod runs on.

    Where several nodes' files are given, the node's name must be a part of the file's path.
    """
    params = facts.all("driver-params")
    node = facts.value("node-name", "node")
    here = [f for f in params if node and node in re.split(r"[/\\:]", f.where)]
    for fact in here or params:
        name = node if here and node else "this node"
        code = "counters-open" if fact.fields.get("value") == "0" else "counters-locked"
        if code == "counters-locked" and facts.first("profiling-done"):
            continue  # counters were read: the process has the capability
        if code == "counters-locked" and facts.first("has-sys-admin"):
            code = "counters-locked-capable"
        _add(facts, code, fact, node=name)
    other = [f for f in params if here and f not in here]
    if other and other[0].fields.get("value") != here[0].fields.get("value"):
        there = re.split(r"[/\\:]", other[0].where)[0]
        _add(facts, "node-settings-differ", here[0], here=node or "", there=there)


def _capabilities(facts: Facts) -> None:
    for fact in facts.all("effective-capabilities"):
        mask = int(fact.fields["mask"], 16)
        code = "has-sys-admin" if mask >> SYS_ADMIN_BIT & 1 else "no-sys-admin"
        _add(facts, code, fact, mask=fact.fields["mask"])


def _progress(facts: Facts) -> None:
    """Kernels profiled to the end, and a last kernel that was begun and never finished."""
    done = facts.all("profiling-done")
    split = facts.all("profiling-begun") if facts.first("profiling-tail") else []
    if done or split:
        count = sum(facts.counts.get(code, 0) for code in ("profiling-done", "profiling-tail"))
        first = (done or split)[0]
        _add(facts, "all-passes-done", first, kernel=_kernel(first), count=str(count))
    begun = _unfinished(facts)
    if begun is not None:
        shown = dataclasses.replace(begun, text=quote(begun.text))
        waits = "yes" if COLLECTIVE.search(_kernel(begun)) else "no"
        _add(facts, "unfinished-kernel", shown, kernel=_kernel(begun), waits=waits)


def _overcome(facts: Facts) -> None:
    """Failures behind which a launch was profiled to the end: of an earlier run, or only texts."""
    done = facts.last.get("profiling-done")
    if done is None:
        return
    reached = facts.last_order["profiling-done"]
    refused = [fact for code in _REFUSALS if (fact := facts.first(code)) is not None]
    if refused and all(facts.last_order[fact.code] < reached for fact in refused):
        _add(facts, "refusal-overcome", refused[0], kernel=_kernel(done))
    if 0 < facts.last_order.get("no-kernels-profiled", 0) < reached:
        shown = dataclasses.replace(done, text=quote(done.text))
        _add(facts, "later-run-worked", shown, kernel=_kernel(done))


def _unfinished(facts: Facts) -> LogFact | None:
    """The launch that was begun and not ended: the last one begun; or, among ranks that go on
    while one stands, a collective whose line has no end."""
    last = facts.last.get("profiling-begun")
    if last is None:
        return None
    ended = max(facts.last_order.get(code, 0) for code in _ENDS)
    if facts.last_order["profiling-begun"] > ended:
        return last
    open_lines = facts.counts["profiling-begun"] - facts.counts.get("profiling-tail", 0)
    stopped = any(facts.counts.get(code) for code in ("disconnected", "failed-to-profile"))
    if open_lines <= 0 or stopped:
        return None
    begun = facts.all("profiling-begun")
    return next((f for f in begun if COLLECTIVE.search(_kernel(f))), None)


def _kernel(fact: LogFact) -> str:
    """The kernel's name without quotes and without the index that ncu puts behind it."""
    name = fact.fields.get("kernel", "?")
    return re.sub(r"\s+-\s+\d+(\s*\(.*\))?$", "", name).strip(" \"'")


def _collectives(facts: Facts) -> None:
    for code in ("profiling-done", "profiling-begun", "failed-to-profile", "cooperative-kernel"):
        for fact in facts.all(code):
            if COLLECTIVE.search(_kernel(fact)):
                _add(facts, "collective-kernel", fact, kernel=_kernel(fact))
    for fact in facts.all("opt-kernel-name"):
        if COLLECTIVE.search(fact.fields["value"]):
            _add(facts, "collective-kernel", fact, kernel=fact.fields["value"])


def cuda_of(number: str) -> str:
    """A CUDA version as people write it: ``12090`` is 12.9."""
    if "." in number:
        return number
    value = int(re.sub(r"\D", "", number) or 0)
    return f"{value // 1000}.{value % 1000 // 10}"


def _versions(facts: Facts) -> None:
    line = facts.first("cuda-versions")
    if line is not None:
        runtime, driver = cuda_of(line.fields["runtime"]), cuda_of(line.fields["driver"])
        if runtime.split(".")[0] != driver.split(".")[0]:
            _add(facts, "cuda-skew", line, runtime=runtime, driver=driver)
    wrote, opens = facts.first("report-session-version"), facts.first("ncu-version")
    if wrote is not None and opens is not None:
        report, local = wrote.fields["version"], opens.fields["version"]
        if numbers_of(report)[:2] > numbers_of(local)[:2]:
            _add(facts, "report-newer", wrote, report=report, local=local)
    ncu, needs = facts.first("ncu-version"), _needed_ncu(facts)
    if ncu is not None and needs is not None:
        version, (wanted, driver_text) = ncu.fields["version"], needs
        if numbers_of(version)[:2] < numbers_of(wanted):
            _add(facts, "ncu-older-than-driver", ncu, ncu=version, driver=driver_text, needs=wanted)


def _needed_ncu(facts: Facts) -> tuple[str, str] | None:
    """The ncu release of the driver's CUDA generation, and the driver as it was stated."""
    cuda = facts.value("cuda-driver-version", "version")
    if cuda is not None:
        found = [r for r in RELEASES if numbers_of(r.cuda) <= numbers_of(cuda_of(cuda))]
        return (found[-1].ncu, f"CUDA {cuda_of(cuda)}") if found else None
    driver = facts.value("driver-version", "version")
    if driver is None:
        return None
    found = [r for r in RELEASES if numbers_of(r.driver)[0] <= numbers_of(driver)[0]]
    return (found[-1].ncu, f"driver {driver}") if found else None


def _chips(facts: Facts) -> None:
    listed = facts.first("chips-listed")
    for chip in facts.all("gpu-chip"):
        if listed is None or chip.fields["chip"].lower() in listed.fields["chips"].lower():
            continue
        _add(facts, "chip-not-listed", chip, chip=chip.fields["chip"])


def _sizes(facts: Facts) -> None:
    sizes = {f.fields["side"].lower(): f for f in facts.all("file-size")}
    far = next((sizes[s] for s in ("pod", "remote", "source", "container") if s in sizes), None)
    near = next((sizes[s] for s in ("local", "copy", "here", "target") if s in sizes), None)
    if far and near:
        whole, got = (int(re.sub(r"\D", "", f.fields["bytes"])) for f in (far, near))
        if got < whole:
            _add(
                facts,
                "copy-is-short",
                near,
                whole=str(whole),
                got=str(got),
                missing=str(whole - got),
            )
    for fact in facts.all("file-listed"):
        if fact.fields.get("bytes") == "0":
            _add(facts, "empty-trace", fact, name=fact.fields["name"])


def _neighbours(facts: Facts) -> None:
    for fact in facts.all("gpu-process-row"):
        _add(facts, "other-gpu-process", fact, pid=fact.fields["pid"], name=fact.fields["name"])


def _processes(facts: Facts) -> None:
    """GPU processes that stand outside the tree of ncu, by the indentation of a process tree."""
    rows = facts.all("tree-row")
    inside: set[str] = set()
    depth_of_ncu: int | None = None
    for fact in rows:
        depth = fact.text.find(fact.fields["pid"])
        name = fact.fields["name"].strip()
        if depth_of_ncu is not None and depth <= depth_of_ncu:
            depth_of_ncu = None
        if re.match(r"(\S*/)?(ncu|nsys)\b", name):
            depth_of_ncu = depth
        if depth_of_ncu is not None:
            inside.add(fact.fields["pid"])
    if not inside:
        return
    for fact in rows:
        name = fact.fields["name"].strip()
        if fact.fields["pid"] not in inside and re.search(r"GPU \d|EngineCore|Worker|ray::", name):
            _add(facts, "gpu-process-outside-tree", fact, pid=fact.fields["pid"], name=name)


def _waiting(facts: Facts) -> None:
    capture = facts.first("expected-capture")
    idle = facts.value("connection-idle-limit", "seconds")
    if capture and idle and float(capture.fields["seconds"]) > float(idle):
        _add(
            facts,
            "capture-outlasts-connection",
            capture,
            capture=capture.fields["seconds"],
            idle=idle,
        )
    ranks, all_ranks = facts.first("ranks-in-capture"), facts.value("ranks-in-production", "ranks")
    if ranks and all_ranks and int(ranks.fields["ranks"]) < int(all_ranks):
        _add(facts, "fewer-ranks", ranks, capture=ranks.fields["ranks"], production=all_ranks)


def _device_memory(facts: Facts) -> None:
    for fact in facts.all("device-memory"):
        total, free = (int(re.sub(r"\D", "", fact.fields[k])) for k in ("total", "free"))
        if total > 0 and free / total < 0.05:
            _add(
                facts,
                "device-memory-free-share",
                fact,
                percent=f"{100 * free / total:.1f}",
                free=f"{free} MiB",
                total=f"{total} MiB",
            )


def _missing_metrics(facts: Facts) -> None:
    """Metrics that an import asked for and that its table does not show."""
    asked, table = facts.first("opt-metrics"), facts.first("table-columns")
    if asked is None or table is None or facts.first("opt-import") is None:
        return
    columns = set(table.fields["names"].split("\n"))
    missing = [name for name in asked.fields["value"].split(",") if name.strip() not in columns]
    if missing:
        _add(facts, "metric-not-in-table", asked, names=",".join(missing))


def _sessions(facts: Facts) -> None:
    """Two sessions whose clock control differs."""
    found = facts.all("stated-clock-control")
    values = [fact.fields["value"] for fact in found]
    if len(set(values)) > 1:
        _add(facts, "clock-controls-differ", found[0], values=" and ".join(values))


def _window(facts: Facts) -> None:
    """A launch count (with the skip) beyond the launches of a timeline or an API table."""
    asked = facts.first("opt-launch-count")
    seen = facts.first("window-launches") or facts.first("api-launches")
    if asked is None or seen is None or not asked.fields["value"].isdigit():
        return
    skip = facts.value("opt-launch-skip", "value") or "0"
    total = int(re.sub(r"\D", "", seen.fields["count"]))
    if skip.isdigit() and int(asked.fields["value"]) + int(skip) > total:
        _add(
            facts,
            "launch-count-beyond",
            asked,
            asked=asked.fields["value"],
            skip=skip,
            seen=str(total),
            where=seen.where,
        )


def _ranks(facts: Facts) -> None:
    """Results of another device than the command names."""
    asked = facts.first("opt-devices")
    found = facts.first("report-ordinals")
    if asked is None or found is None:
        return
    wanted = set(re.findall(r"\d+", asked.fields["value"]))
    seen = set(found.fields["ordinals"].split(", "))
    if wanted and not wanted & seen:
        _add(
            facts,
            "report-other-device",
            found,
            wanted=", ".join(sorted(wanted)),
            found=found.fields["ordinals"],
        )
