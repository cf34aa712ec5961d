"""``verdict.json``: what the gates said."""

from __future__ import annotations

from typing import Any

from solscope.model.campaign import VERDICT_SCHEMA, CampaignVerdict


def document(verdict: CampaignVerdict) -> dict[str, Any]:
    """The file as plain values."""
    return {
        "schema": VERDICT_SCHEMA,
        "campaign": verdict.slug,
        "tier": verdict.tier.value,
        "sol_rigor": verdict.sol_rigor,
        "passes": verdict.passes,
        "taken_at": verdict.taken_at,
        "gates": [
            {
                "gate": result.gate,
                "passes": result.passes,
                "standing": result.standing.value,
                "where": result.where,
                "reason": result.reason,
                "promote": result.promote or None,
            }
            for result in verdict.results
        ],
    }


def encode(verdict: CampaignVerdict) -> bytes:
    """The file's bytes."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document(verdict)), indent=2) + b"\n"
