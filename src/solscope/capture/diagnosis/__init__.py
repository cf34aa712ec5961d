"""Evidence in, ranked causes out: lines -> templates -> facts -> rules -> causes.

Templates and rules are data (``data/lines``, ``data/causes``); the engine knows no message.
Never runs a profiler, never asks a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from solscope.capture.diagnosis import command, figures, filters, reporting, surroundings
from solscope.capture.diagnosis.derivation import derive
from solscope.capture.diagnosis.intake import Evidence, Intake
from solscope.capture.diagnosis.judgement import Judge, conclude
from solscope.capture.diagnosis.knowledge import Knowledge, load
from solscope.capture.diagnosis.redaction import redact
from solscope.capture.diagnosis.scanning import Facts, Scanner
from solscope.model.diagnosis import Cause, Diagnosis
from solscope.model.report import Report
from solscope.model.trace import TimelineReport

__all__ = ["Evidence", "diagnose"]


def diagnose(
    evidence: Sequence[Evidence],
    *,
    reports: Sequence[Report] = (),
    version: str | None = None,
    knowledge: Knowledge | None = None,
    peak_of: figures.PeakOf | None = None,
    timelines: Sequence[TimelineReport] = (),
) -> Diagnosis:
    """Diagnose from texts and reports.

    ``version`` is ncu's release, where it is known; ``peak_of`` gives the ceilings against which
    stated figures are held; ``timelines`` show what the window launches. Raises :class:`OSError`
    where a file cannot be read.
    """
    knowledge = knowledge or load()
    taken = Intake(Scanner(knowledge))
    for item in evidence:
        taken.take(item)
    facts, commands = taken.facts, taken.commands
    figures.state(taken.figures, facts, peak_of)
    if version is not None:
        facts.add("ncu-version", "stated", f"ncu {version}", {"version": version})
    wanted = next((v for c in commands if (v := c.value("kernel-name"))), None)
    for report in reports:
        reporting.state(report, wanted, facts)
    for timeline in timelines:
        reporting.state_window(timeline, wanted, facts)
    causes = _judge(Judge(knowledge), commands, facts, facts.value("ncu-version", "version"))
    read = [
        *(item.name for item in evidence),
        *(report.provenance.path for report in reports),
        *(timeline.provenance.path for timeline in timelines),
    ]
    return conclude(causes, facts, knowledge, [redact(name) for name in read])


def _judge(
    judge: Judge, commands: list[command.Command], facts: Facts, version: str | None
) -> tuple[Cause, ...]:
    """One command belongs to the log; several are judged one by one, each with the log."""
    if len(commands) < 2:
        for only in commands:
            _state(only, facts, version)
        derive(facts)
        return judge.causes(facts)
    found: dict[str, Cause] = {}
    for one in commands:
        own = _copy(facts)
        _state(one, own, version)
        derive(own)
        for cause in judge.causes(own):
            found.setdefault(cause.code, cause)
    derive(facts)
    return tuple(sorted(found.values(), key=lambda c: list(_ORDER).index(c.role.value)))


def _state(one: command.Command, facts: Facts, version: str | None) -> None:
    """The facts of a command: its options, what they select, what stands around it."""
    command.state(one, facts, version)
    filters.state(one, facts)
    surroundings.state(one, facts)


_ORDER = ("cause", "suspect", "advice", "well", "harmless")


def _copy(facts: Facts) -> Facts:
    return Facts(
        by_code={code: list(kept) for code, kept in facts.by_code.items()},
        counts=dict(facts.counts),
        last=dict(facts.last),
        last_order=dict(facts.last_order),
        unknown=list(facts.unknown),
        order=facts.order,
        seen=set(facts.seen),
    )
