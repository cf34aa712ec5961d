"""Facts in, ranked causes out. The rules are data; this file only weighs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from solscope.capture.diagnosis.knowledge import (
    FIELD_REFERENCE,
    CauseRule,
    CheckData,
    Clause,
    Knowledge,
)
from solscope.capture.diagnosis.redaction import redact
from solscope.capture.diagnosis.scanning import Facts
from solscope.model.diagnosis import Cause, Check, Diagnosis, LogFact, Outcome, Role, UnknownLine

MOST_EVIDENCE = 5
LONGEST_FIELD = 120
_ROLE_ORDER = {Role.CAUSE: 0, Role.SUSPECT: 1, Role.ADVICE: 2, Role.WELL: 3, Role.HARMLESS: 4}


class Judge:
    """Applies the causes of a :class:`Knowledge` to facts."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def causes(self, facts: Facts) -> tuple[Cause, ...]:
        """Every cause whose conditions hold, best first, hidden ones left out."""
        found: list[tuple[tuple[int, int, int], CauseRule, Cause]] = []
        for rule in self._knowledge.causes.values():
            grounds = self._grounds(rule, facts)
            if grounds is not None:
                cause = self._cause(rule, grounds, facts)
                later = _later(rule, grounds, facts)
                cause = cause if later is None else _passed(cause, later)
                found.append((_rank(rule, cause), rule, cause))
        faults = (Role.CAUSE, Role.SUSPECT)
        firmest = min((rule.fallback for _, rule, c in found if c.role in faults), default=0)
        found = [e for e in found if e[1].fallback <= firmest]
        hidden = {c for _, rule, cause in found if cause.role == rule.role for c in rule.hides}
        kept = [(rank, cause) for rank, rule, cause in found if rule.id not in hidden]
        return tuple(cause for _, cause in sorted(kept, key=lambda pair: pair[0]))

    def _grounds(self, rule: CauseRule | Clause, facts: Facts) -> list[LogFact] | None:
        """The facts on which a rule rests, or ``None`` where it does not hold."""
        if any(self._matching(text, facts) for text in rule.none):
            return None
        grounds: list[LogFact] = []
        for text in rule.all:
            matching = self._matching(text, facts)
            if not matching:
                return None
            grounds += matching
        if rule.any:
            options = [fact for text in rule.any for fact in self._matching(text, facts)]
            if not options:
                return None
            grounds += options
        return grounds

    def _matching(self, text: str, facts: Facts) -> list[LogFact]:
        condition = self._knowledge.condition(text)
        return [f for f in facts.all(condition.code) if condition.holds(f.fields)]

    def _cause(self, rule: CauseRule, grounds: list[LogFact], facts: Facts) -> Cause:
        why, remedies = list(rule.why), list(rule.remedies)
        checks = list(rule.checks)
        for clause in rule.also:
            more = self._grounds(clause, facts)
            if more is None:
                continue
            if clause.instead:
                why = [] if clause.why else why
                remedies = [] if clause.remedies else remedies
                checks = [] if clause.checks else checks
            why += clause.why
            remedies += clause.remedies
            checks += clause.checks
            grounds = [*grounds, *more]
        say = _Filler(grounds, facts)
        return Cause(
            code=rule.id,
            role=Role(rule.role),
            title=say(rule.title),
            why=tuple(map(say, why)),
            remedies=tuple(map(say, remedies)),
            checks=tuple(_check(c, say) for c in checks),
            evidence=_evidence(grounds),
            sources=rule.sources,
        )


def _check(data: CheckData, say: _Filler) -> Check:
    return Check(do=say(data.do), decides=say(data.decides))


class _Filler:
    """Fills ``{code.field}`` from the facts that a cause rests on, else from any such fact."""

    def __init__(self, grounds: Sequence[LogFact], facts: Facts) -> None:
        self._grounds = grounds
        self._facts = facts

    def __call__(self, text: str) -> str:
        return FIELD_REFERENCE.sub(lambda hit: self._value(hit.group(1), hit.group(2)), text)

    def _value(self, code: str, name: str) -> str:
        for fact in self._grounds:
            if fact.code == code and name in fact.fields:
                return redact(fact.fields[name])[:LONGEST_FIELD]
        value = self._facts.value(code, name)
        return f"({name} not stated)" if value is None else redact(value)[:LONGEST_FIELD]


def _later(rule: CauseRule, grounds: Sequence[LogFact], facts: Facts) -> LogFact | None:
    """What shows that the trouble passed: a fact behind all grounds, in the file of the last."""
    codes = {fact.code for fact in grounds if fact.is_timed}
    if not codes:
        return None
    end = max(facts.last_order[code] for code in codes if code in facts.last_order)
    place = max((facts.last[c] for c in codes if c in facts.last), key=lambda f: f.order).where
    for code in rule.overcome_by:
        fact = facts.last.get(code)
        if fact is not None and facts.last_order[code] > end and _file(fact.where) == _file(place):
            return fact
    return None


def _file(where: str) -> str:
    return where.rpartition(":")[0]


def _passed(cause: Cause, later: LogFact) -> Cause:
    why = (*cause.why, f"It passed: {later.where} is behind it in the same file.")
    title = f"{cause.title} (it passed)"
    return replace(cause, role=Role.HARMLESS, title=title, why=why, remedies=(), checks=())


def _evidence(grounds: Iterable[LogFact]) -> tuple[LogFact, ...]:
    """The distinct lines, in reading order."""
    distinct: dict[tuple[str, str], LogFact] = {}
    for fact in sorted(grounds, key=lambda f: f.order):
        shown = {name: redact(value)[:LONGEST_FIELD] for name, value in fact.fields.items()}
        distinct.setdefault((fact.where, fact.text), replace(fact, fields=shown))
    return tuple(distinct.values())[:MOST_EVIDENCE]


def _rank(rule: CauseRule, cause: Cause) -> tuple[int, int, int]:
    """Role first; then what was seen to happen, in time; then the rule's own rank."""
    times = [f.order for f in cause.evidence if f.is_timed]
    return (_ROLE_ORDER[cause.role], min(times) if times else 1 << 60, rule.rank)


def conclude(
    causes: Sequence[Cause], facts: Facts, knowledge: Knowledge, read: Sequence[str]
) -> Diagnosis:
    """The diagnosis that causes and facts amount to."""
    main = tuple(c for c in causes if c.role in (Role.CAUSE, Role.SUSPECT, Role.ADVICE))
    harmless = tuple(c for c in causes if c.role is Role.HARMLESS)
    well = tuple(c for c in causes if c.role is Role.WELL)
    grounds = {fact.code for cause in main for fact in cause.evidence}
    outcome, code, summary, checks = _answer(main, well, harmless, facts)
    return Diagnosis(
        outcome=outcome,
        code=code,
        summary=summary,
        causes=main or (well if outcome is Outcome.WELL else ()),
        harmless=harmless,
        checks=checks,
        consequences=tuple(
            (t.means, facts.counts[t.id])
            for t in knowledge.templates.values()
            if t.is_consequence and t.id in facts.counts and t.id not in grounds
        ),
        unknown=tuple(facts.unknown or (_complaints(facts) if code in _NOTHING else ())),
        read=tuple(read),
    )


def _answer(
    main: Sequence[Cause], well: Sequence[Cause], harmless: Sequence[Cause], facts: Facts
) -> tuple[Outcome, str, str, tuple[Check, ...]]:
    proven = [c for c in main if c.role is not Role.SUSPECT]
    if main and main[0].role is Role.SUSPECT:
        checks = tuple(check for c in main for check in c.checks)
        if not proven or proven[0].role is Role.ADVICE:
            return (Outcome.UNDECIDED, main[0].code, f"Undecided: {main[0].title}", checks)
    if proven:
        count = len(proven)
        more = "" if count == 1 else f" (and {count - 1} more below)"
        return (Outcome.CAUSE, proven[0].code, proven[0].title + more, ())
    if "unknown-error" in facts.counts:
        return (
            Outcome.UNDECIDED,
            "unknown-error-line",
            "Undecided: the profiler reports an error that no template knows",
            (_UNKNOWN_CHECK,),
        )
    if "no-kernels-profiled" in facts.counts and "later-run-worked" not in facts.counts:
        return (
            Outcome.UNDECIDED,
            "no-kernels-undecided",
            "Undecided: nothing was profiled, and the log does not say why",
            _EMPTY_CHECKS,
        )
    if well:
        return (Outcome.WELL, "ok", well[0].title, ())
    if harmless:
        return (Outcome.WELL, "ok", "No fault found: only lines that are harmless", ())
    is_log = any(fact.is_timed for kept in facts.by_code.values() for fact in kept)
    if "manifest" in facts.counts and not is_log:
        return (
            Outcome.UNDECIDED,
            "manifest-shows-no-fault",
            "Undecided: the manifest shows no obstacle, and nothing that ran was given",
            (_PREFLIGHT_CHECK,),
        )
    if facts.counts:
        return (
            Outcome.UNDECIDED,
            "nothing-decided",
            "Undecided: lines were recognised, but none is a fault or a finished profile",
            _EMPTY_CHECKS,
        )
    but = ", only complaints of another one" if _complaints(facts) else ""
    return (
        Outcome.UNDECIDED,
        "nothing-recognised",
        f"Undecided: no line of a known profiler, server or cluster tool was found{but}",
        (_OTHER_INPUT_CHECK,),
    )


def _complaints(facts: Facts) -> list[UnknownLine]:
    return facts.complaints or facts.murmurs


_NOTHING = ("nothing-recognised", "nothing-decided")
"""Answers with which lines of other tools are shown that look like complaints."""

_UNKNOWN_CHECK = Check(
    do="run the same capture once more on a trivial kernel (any small CUDA sample), same options",
    decides="whether the error belongs to this machine (it repeats) or to this workload (it does "
    "not)",
)
_EMPTY_CHECKS = (
    Check(
        do="run it again with `ncu --verbose --log-file ncu.log …` and diagnose that log",
        decides="each launch that was passed over is then listed with its reason (name filter, "
        "NVTX, range, skip count, chip, device)",
    ),
    Check(
        do="grep 'Connected to process' in the whole log",
        decides="no such line: no process that ncu followed used CUDA (it failed before, it is a "
        "wrapper under `application-only`, or it has no GPU work). One: its launches were passed "
        "over",
    ),
    Check(
        do='give the command too: `solscope diagnose LOG --command "ncu …"`',
        decides="whether filters or the choice of processes exclude every launch",
    ),
)
_PREFLIGHT_CHECK = Check(
    do="`solscope preflight` on the manifest or the live workload",
    decides="whether, and how, the workload can be profiled: node, driver and rights included",
)
_OTHER_INPUT_CHECK = Check(
    do="diagnose the profiler's own output: `ncu … --log-file ncu.log`, then "
    "`solscope diagnose ncu.log`",
    decides="whether the profiler ran at all, and what it said",
)
