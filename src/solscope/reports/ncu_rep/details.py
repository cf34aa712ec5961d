"""Sections, rule messages and NVTX state of a result, decoded when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.report import NvtxRange, RuleAdvice, Section, SectionMetric
from solscope.reports.ncu_rep import container, schema

# Message types of ncu's rules; 4 exists since the estimated speed-ups of 2023.2.
_KINDS = {0: "none", 1: "ok", 2: "warning", 3: "error", 4: "optimization"}
_SPEEDUPS = {1: "local", 2: "global"}


def text(raw: bytes) -> str:
    """A stored string; damage shows as replacement characters, never as an error."""
    return raw.decode("utf-8", "replace")


class LazyDetails:
    """Satisfies ``model.report.Details`` over the raw messages."""

    __slots__ = ("_nvtx", "_rules", "_sections")

    def __init__(self, sections: Sequence[bytes], rules: Sequence[bytes], nvtx: bytes) -> None:
        self._sections = sections
        self._rules = rules
        self._nvtx = nvtx

    def sections(self) -> tuple[Section, ...]:
        """The sections as collected, in the order stored; damaged ones are left out."""
        return tuple(_section(m) for m in _messages("Section", self._sections))

    def rules(self) -> tuple[RuleAdvice, ...]:
        """Every message of every rule, with the estimated speed-up that stands beside it."""
        return tuple(a for rule in _messages("Rule", self._rules) for a in _advice(rule))

    def nvtx(self) -> tuple[NvtxRange, ...]:
        """The ranges open at the launch; push/pop ranges outermost first, per thread."""
        state = container.parse(schema.messages()["Nvtx"], self._nvtx) if self._nvtx else None
        return () if state is None else tuple(_ranges(state))


def _messages(name: str, raw: Sequence[bytes]) -> Iterator[Any]:
    for data in raw:
        message = container.parse(schema.messages()[name], data)
        if message is not None:
            yield message


def _section(message: Any) -> Section:
    return Section(
        identifier=text(message.identifier),
        display_name=text(message.display_name),
        order=message.order if message.HasField("order") else None,
        header=tuple(
            SectionMetric(label=text(m.label), metric=text(m.name)) for m in message.header.metrics
        ),
        metrics=tuple(text(m.name) for m in message.metrics.metrics),
    )


def _advice(rule: Any) -> Iterator[RuleAdvice]:
    for item in rule.body.items:
        if not item.HasField("message"):
            continue
        speedup = item.speedup if item.HasField("speedup") else None
        yield RuleAdvice(
            rule=text(rule.identifier),
            name=text(item.message.name) or text(rule.display_name),
            section=text(rule.section) or None,
            message=text(item.message.message),
            kind=_KINDS.get(item.message.type, f"type {item.message.type}"),
            speedup_kind=None if speedup is None else _SPEEDUPS.get(speedup.type),
            speedup_pct=None if speedup is None else speedup.value,
        )


def _ranges(state: Any) -> Iterator[NvtxRange]:
    domains = {d.id: d for d in state.domains}
    strings = {(d.id, s.id): text(s.value) for d in state.domains for s in d.strings}

    def label(domain_id: int, entry: Any) -> str:
        if entry.name:
            return text(entry.name)
        message = entry.attributes.message
        return text(message.message) or strings.get((domain_id, message.handle), "")

    def domain_name(domain_id: int) -> str:
        return text(domains[domain_id].name) if domain_id in domains else ""

    for thread in state.threads:
        for pushed in thread.domains:
            for entry in pushed.stack:
                yield NvtxRange(
                    domain=domain_name(pushed.id),
                    name=label(pushed.id, entry),
                    thread_id=thread.thread_id,
                )
    for started in state.started:
        for entry in started.ranges:
            yield NvtxRange(
                domain=domain_name(started.id), name=label(started.id, entry), is_push_pop=False
            )
