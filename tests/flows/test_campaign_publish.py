"""What the lake is told of a campaign by the gates that run inside publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.campaigns import a_busy_kernel, a_cell, grounded

from solscope.evidence.campaign import folder as folders
from solscope.flows import publish
from solscope.flows.world import World
from solscope.lake import query
from solscope.lake.delta import Lake


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a campaign ``dec`` of one cell that states L3."""
    monkeypatch.chdir(tmp_path)
    place = folders.named("campaigns", "dec")
    folders.init(place, b"name: Decode\nkrhpa_exempt_reason: stock engine\n")
    cell = a_cell(a_busy_kernel(), cell_id="c1", context=grounded())
    folders.write_cell(place, cell, b"grounding: {sol_rigor: L3}\n")
    return tmp_path


@pytest.mark.parametrize("stale", [None, {"sol_rigor": "L4", "tier": "VERDICT", "gates": []}])
def test_the_row_says_what_the_gates_say_now(home: Path, stale: dict[str, object] | None) -> None:
    if stale is not None:
        Path("campaigns/dec/verdict.json").write_text(json.dumps(stale))
    publish.run(publish.PublishRequest(slug="dec", no_strict=True, yes=True), World())
    sql = "SELECT tier, sol_rigor, verdict_json FROM campaigns"
    ((tier, rigor, said),) = query.ask(Lake(location="lake"), sql).rows
    assert (tier, rigor) == ("DRAFT", "L3")
    document = json.loads(said)
    assert (document["tier"], document["sol_rigor"]) == ("DRAFT", "L3")
    assert "taken_at" not in document
    assert {gate["gate"] for gate in document["gates"]} >= {"context", "trials", "next-lever"}
