"""What a publish did, or would do, as text and as JSON."""

from __future__ import annotations

from solscope.model.lake import Publication


def as_text(done: Publication) -> str:
    """One line of what happened, the rows of each table, the gaps, the next step."""
    return "\n".join(
        [
            _headline(done),
            f"  tier {done.tier}, publish {done.publish_id}",
            *(f"  {count:>9,}  {name}" for name, count in done.counts.items()),
            *_gaps(done),
            *_next(done),
        ]
    )


def as_json(done: Publication) -> str:
    """The publication, schema ``solscope.publication/1``."""
    import msgspec

    document = {"schema": "solscope.publication/1", **msgspec.to_builtins(done)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _headline(done: Publication) -> str:
    if done.refused:
        return f"{done.campaign}: refused, {_count(len(done.gaps), 'gate')} not passed"
    if done.already_there:
        return f"{done.campaign}: already in {done.lake}, nothing to write"
    if done.written:
        return f"{done.campaign}: published to {done.lake}"
    return f"{done.campaign}: would be published to {done.lake}; nothing was written"


def _gaps(done: Publication) -> list[str]:
    return [f"  gap {gap.gate}: {gap.reason}" for gap in done.gaps]


def _next(done: Publication) -> list[str]:
    if done.refused:
        return ["  next: close the gaps, or publish as DRAFT with --no-strict"]
    if done.written or done.already_there:
        return []
    return ["  next: add --yes to write it"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
