"""The only list of verbs. The command line and, later, the MCP server are made from it.

Kept free of imports so that ``solscope --help`` costs nothing: request types and functions are
named as ``module:attribute`` and loaded when a verb is called.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

READS = "reads"
WRITES_FILES = "writes files"
TOUCHES_CLUSTER = "touches cluster"
PUBLISHES = "publishes"


class Verb:
    """One verb: its name, a line of help, its effect, its request type and its function.

    ``effect`` decides confirmation and MCP hints; verbs that touch a cluster or publish default
    to a dry run.
    """

    __slots__ = ("effect", "name", "request", "run", "summary")

    def __init__(self, name: str, summary: str, effect: str, request: str, run: str) -> None:
        self.name = name
        self.summary = summary
        self.effect = effect
        self.request = request
        self.run = run


VERBS: Final = (
    Verb(
        "read",
        "Say what each file is and what it holds.",
        READS,
        "solscope.flows.read:ReadRequest",
        "solscope.flows.read:run",
    ),
    Verb(
        "analyze",
        "Say what binds each kernel and how far it stands from the speed of light.",
        READS,
        "solscope.flows.analyze:AnalyzeRequest",
        "solscope.flows.analyze:run",
    ),
    Verb(
        "budget",
        "Say where the time of a decode step goes, and what binds it.",
        READS,
        "solscope.flows.budget:BudgetRequest",
        "solscope.flows.budget:run",
    ),
    Verb(
        "join",
        "Join samples, times and counters of the same kernels.",
        READS,
        "solscope.flows.join:JoinRequest",
        "solscope.flows.join:run",
    ),
    Verb(
        "compare",
        "Say what changed between two reports, where they were measured alike.",
        READS,
        "solscope.flows.compare:CompareRequest",
        "solscope.flows.compare:run",
    ),
    Verb(
        "preflight",
        "Say whether, and how, ncu can profile a live workload or a manifest. Touches nothing.",
        READS,
        "solscope.flows.preflight:PreflightRequest",
        "solscope.flows.preflight:run",
    ),
    Verb(
        "plan",
        "Plan a capture: metric list, predicted passes, cost, the exact ncu command.",
        WRITES_FILES,
        "solscope.flows.plan:PlanRequest",
        "solscope.flows.plan:run",
    ),
    Verb(
        "sister",
        "Make an isolated copy of a workload to profile, and prove that nothing reaches it.",
        TOUCHES_CLUSTER,
        "solscope.flows.sister:SisterRequest",
        "solscope.flows.sister:run",
    ),
    Verb(
        "capture",
        "Run a plan on the isolated copy: reports home, receipts, nothing left behind.",
        TOUCHES_CLUSTER,
        "solscope.flows.capture:CaptureRequest",
        "solscope.flows.capture:run",
    ),
    Verb(
        "diagnose",
        "Tell why a capture failed, from its logs, or what is wrong with a command.",
        READS,
        "solscope.flows.diagnose:DiagnoseRequest",
        "solscope.flows.diagnose:run",
    ),
    Verb(
        "bundle",
        "Keep evidence a reviewer can check: init, record, seal, verify a bundle.",
        WRITES_FILES,
        "solscope.flows.bundle:BundleRequest",
        "solscope.flows.bundle:run",
    ),
    Verb(
        "campaign",
        "Make a campaign, or add an evidence bundle to it as a cell.",
        WRITES_FILES,
        "solscope.flows.campaign:CampaignRequest",
        "solscope.flows.campaign:run",
    ),
    Verb(
        "gate",
        "Say whether a campaign's numbers are DRAFT or VERDICT, and why.",
        WRITES_FILES,
        "solscope.flows.gate:GateRequest",
        "solscope.flows.gate:run",
    ),
    Verb(
        "report",
        "Write a campaign's pages: HTML, PDF and their status.",
        WRITES_FILES,
        "solscope.flows.report:ReportRequest",
        "solscope.flows.report:run",
    ),
    Verb(
        "next",
        "Rank what to change next, and keep HANDOFF.md.",
        WRITES_FILES,
        "solscope.flows.next:NextRequest",
        "solscope.flows.next:run",
    ),
    Verb(
        "publish",
        "Put a campaign, judged by its gates, into the lake.",
        PUBLISHES,
        "solscope.flows.publish:PublishRequest",
        "solscope.flows.publish:run",
    ),
    Verb(
        "query",
        "Ask the lake: SQL, or a query that solscope ships.",
        READS,
        "solscope.flows.query:QueryRequest",
        "solscope.flows.query:run",
    ),
)
