"""What a campaign of the sample says, looked at by eye once and kept.

``SOLSCOPE_GOLDEN=rewrite`` rewrites the files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from solscope.evidence.campaign import folder as folders
from solscope.flows import campaign, gate
from solscope.flows import next as next_flow
from solscope.flows.world import World

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "decode-step-h100.ncu-rep"
PAGES = Path(__file__).parent / "campaign"
WORLD = World(width=100, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
CONFIG = b"""\
name: A candidate against the library
krhpa:
  candidate: {K: 4, R: 2, H: 1, P: 3, A: 1, name: Triton FMA, cell: c1, kernel: rotary}
  baseline: {K: 4, R: 1, H: 4, P: 4, A: 1, name: nvjet, cell: c1, kernel: nvjet}
claims: [{says: at-roof, kernel: nvjet}]
"""


def keys() -> str:
    """The cell's keys and the version 1 part of its first kernel."""
    path = Path("campaigns/ab/cells/c1/ncu_kernels.json")
    document = json.loads(path.read_text())
    shown = {
        **document,
        "kernels": document["kernels"][:1],
        "solscope": sorted(document["solscope"]),
    }
    return json.dumps(shown, indent=2) + "\n"


def gates() -> str:
    return gate.run(gate.GateRequest(slug="ab"), WORLD).text + "\n"


def levers() -> str:
    return next_flow.run(next_flow.NextRequest(slug="ab"), WORLD).text + "\n"


def hand_off() -> str:
    levers()
    return Path("campaigns/ab/HANDOFF.md").read_text()


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("ncu_kernels.json", keys),
        ("gate.txt", gates),
        ("next.txt", levers),
        ("HANDOFF.md", hand_off),
    ],
)
def test_what_a_campaign_says_is_as_it_was_agreed(
    name: str, made: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders.init(folders.named("campaigns", "ab"), CONFIG)
    Path("run-1/ncu-profiles").mkdir(parents=True)
    shutil.copy(SAMPLE, "run-1/ncu-profiles")
    Path("run-1/capture_sources.json").write_text('{"captured_sources": ["ncu"]}')
    add = campaign.CampaignRequest(action="add", slug="ab", cell="c1", bundle="run-1")
    campaign.run(add, WORLD)
    text, kept = made(), PAGES / name
    if os.environ.get("SOLSCOPE_GOLDEN") == "rewrite":
        kept.write_text(text, encoding="utf-8")
    assert text == kept.read_text(encoding="utf-8")
