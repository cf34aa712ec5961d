"""A live query of a sampler's ClickHouse: anchored in the schema, bounded three ways.

Order: the bounds are checked, the table's columns are looked at, the rows within the bounds are
counted, and only then are samples summed. An unbounded query would scan tens of millions of
rows and starve the ingest of a production system; none is ever sent.
"""

from __future__ import annotations

import hashlib
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from solscope.errors import ReportError, UsageError
from solscope.model.finding import Absence, Issue, Severity
from solscope.model.report import Provenance
from solscope.model.trace import SampleReport
from solscope.reports.zymtrace import clickhouse
from solscope.reports.zymtrace.columns import NAMES, SAMPLES
from solscope.reports.zymtrace.table import sample_table

SCHEMES = ("clickhouse://", "clickhouses://")
MAX_ROWS = 10_000_000
MAX_KERNELS = 100_000
INGEST_LAG = timedelta(minutes=15)
"""How long after a run its rows may still be on their way."""

DATABASE, TABLE = "zymtrace_profiling", "events"
EXAMPLE = (
    "clickhouse://localhost:8123/zymtrace_profiling.events"
    "?pod=my-pod-%25&event=cuda&from=2026-01-31T10:00:00Z&to=2026-01-31T10:05:00Z"
)
ROLES = {
    "time": ("timestamp", "time", "event_time", "ts"),
    "pod": ("pod_name", "k8s_pod_name", "pod", "k8s.pod.name"),
    "event": ("event_kind", "kind", "event_type", "sample_type", "event", "type"),
    "name": NAMES,
    "samples": (*SAMPLES, "count", "value"),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The three bounds, and the table that they bound."""

    database: str
    table: str
    pod: str
    event: str
    begin: datetime
    end: datetime

    def parameters(self) -> dict[str, str]:
        """As bound parameters; times in UTC with milliseconds."""
        return {
            "database": self.database,
            "table": self.table,
            "pod": self.pod,
            "event": self.event,
            "begin": _sql_time(self.begin),
            "end": _sql_time(self.end),
        }

    def __str__(self) -> str:
        return (
            f"pods like {self.pod!r}, event kind {self.event!r}, "
            f"{self.begin:%Y-%m-%d %H:%M:%S} to {self.end:%Y-%m-%d %H:%M:%S} UTC"
        )


def query(
    url: str,
    mapping: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    database: clickhouse.Database | None = None,
) -> SampleReport:
    """The samples of the kernels within the bounds that the address states.

    Raises UsageError where a bound is missing or open, ReportError where the table does not fit,
    holds too much, or (yet) nothing.
    """
    parts = urllib.parse.urlsplit(url)
    bounds = _bounds(parts)
    where = f"{parts.hostname}/{bounds.database}.{bounds.table}"
    source = database or _connect(parts, environ)
    columns = _Columns.look(source, bounds, mapping, where)
    rows, kernels = columns.cardinality(source)
    if rows == 0:
        raise columns.nothing(source, now(), where)
    if rows > MAX_ROWS:
        raise ReportError(
            f"{rows:,} rows within the bounds; more than {MAX_ROWS:,} are not read",
            where=where,
            hint="narrow the time window or the pod pattern",
        )
    found = columns.samples(source)
    digest = hashlib.sha256(msgspec.json.encode(found))
    return SampleReport(
        provenance=Provenance(
            path=_without_credentials(parts),
            sha256=digest.hexdigest(),
            size_bytes=len(msgspec.json.encode(found)),
            format="kernel-samples",
            tool_name="clickhouse",
            tool_version=None,
        ),
        samples=sample_table(
            [str(name) for name, _ in found],
            [float(count) for _, count in found],
            [None] * len(found),
        ),
        population=f"{bounds}; {rows:,} rows",
        issues=tuple(columns.issues(kernels, parts, environ)),
        absences=(
            Absence(field="duration_ns", reason="a sampler counts samples and measures no time"),
        ),
    )


def _bounds(parts: urllib.parse.SplitResult) -> Bounds:
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "credentials do not belong into an address",
            hint=f"set {clickhouse.USER_VARIABLE} and {clickhouse.PASSWORD_VARIABLE}",
        )
    if not parts.hostname:
        raise UsageError("no host in the address", hint=EXAMPLE)
    given = dict(urllib.parse.parse_qsl(parts.query))
    absent = [bound for bound in ("pod", "event", "from", "to") if not given.get(bound)]
    if absent:
        raise UsageError(
            f"the query is not bounded: {', '.join(absent)} missing",
            hint=f"all three bounds are needed (pod pattern, event kind, time window): {EXAMPLE}",
        )
    if not given["pod"].strip("%_* "):
        raise UsageError(f"the pod pattern {given['pod']!r} bounds nothing", hint=EXAMPLE)
    begin, end = _time(given["from"]), _time(given["to"])
    if begin >= end:
        raise UsageError("the window ends before it begins", hint=EXAMPLE)
    database, _, table = parts.path.strip("/").partition(".")
    return Bounds(
        database=database or DATABASE,
        table=table or TABLE,
        pod=given["pod"].replace("*", "%"),
        event=given["event"],
        begin=begin,
        end=end,
    )


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise UsageError(f"{text!r} is no time in ISO 8601", hint=EXAMPLE) from None
    if found.tzinfo is None:
        raise UsageError(f"{text!r} states no time zone", hint="end it with Z for UTC")
    return found.astimezone(UTC)


def _sql_time(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S.") + f"{when.microsecond // 1000:03d}"


def _connect(
    parts: urllib.parse.SplitResult, environ: Mapping[str, str]
) -> clickhouse.HttpDatabase:
    scheme, port = ("https", 8443) if parts.scheme == "clickhouses" else ("http", 8123)
    return clickhouse.HttpDatabase(
        address=f"{scheme}://{parts.hostname}:{parts.port or port}",
        user=environ.get(clickhouse.USER_VARIABLE),
        password=environ.get(clickhouse.PASSWORD_VARIABLE),
    )


def _without_credentials(parts: urllib.parse.SplitResult) -> str:
    host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return parts._replace(netloc=host).geturl()


@dataclass(frozen=True, slots=True)
class _Columns:
    """The table's columns by role (``samples`` may be missing: a row is a sample then)."""

    bounds: Bounds
    by_role: Mapping[str, str]

    @classmethod
    def look(
        cls,
        source: clickhouse.Database,
        bounds: Bounds,
        mapping: Mapping[str, str],
        where: str,
    ) -> _Columns:
        """Look at the schema first. Raises ReportError where a needed column is not there."""
        rows = source.select(
            "SELECT name, type FROM system.columns WHERE database = {database:String} "
            "AND table = {table:String} ORDER BY position",
            bounds.parameters(),
        )
        types = {str(name): str(kind) for name, kind in rows}
        if not types:
            raise ReportError(
                "no such table, or no right to see it", where=where, hint="check database.table"
            )
        by_role = {}
        for role, spellings in ROLES.items():
            title = mapping.get(role) or next((s for s in spellings if s in types), None)
            if title is not None and title in types:
                by_role[role] = title
        absent = [role for role in ("time", "pod", "event", "name") if role not in by_role]
        if absent:
            raise ReportError(
                f"no column for {', '.join(absent)}; there are {', '.join(types)}",
                where=where,
                hint="map them with --columns time=...,pod=...,event=...,name=...; where names "
                "stand in another table, give a view that joins them",
            )
        if not types[by_role["time"]].startswith(("DateTime", "Nullable(DateTime")):
            raise ReportError(
                f"column {by_role['time']} is {types[by_role['time']]}, not a DateTime",
                where=where,
                hint="its unit is not known; give a view that converts it",
            )
        return cls(bounds, by_role)

    def _quoted(self, role: str) -> str:
        return "`" + self.by_role[role].replace("\\", "\\\\").replace("`", "\\`") + "`"

    @property
    def _table(self) -> str:
        names = (self.bounds.database, self.bounds.table)
        return ".".join("`" + n.replace("\\", "\\\\").replace("`", "\\`") + "`" for n in names)

    def _within(self, *, event: bool = True) -> str:
        clauses = [
            f"{self._quoted('pod')} LIKE {{pod:String}}",
            f"{self._quoted('time')} >= toDateTime64({{begin:String}}, 3, 'UTC')",
            f"{self._quoted('time')} < toDateTime64({{end:String}}, 3, 'UTC')",
        ]
        if event:
            clauses.append(f"toString({self._quoted('event')}) = {{event:String}}")
        return " AND ".join(clauses)

    def cardinality(self, source: clickhouse.Database) -> tuple[int, int]:
        """Rows and distinct kernels within the bounds, before anything is read."""
        ((rows, kernels),) = source.select(
            f"SELECT toString(count()), toString(uniq({self._quoted('name')})) "
            f"FROM {self._table} WHERE {self._within()}",
            self.bounds.parameters(),
        )
        return int(rows), int(kernels)

    def samples(self, source: clickhouse.Database) -> list[tuple[str, float]]:
        """Kernels with their samples, most first."""
        counted = "count()" if "samples" not in self.by_role else f"sum({self._quoted('samples')})"
        rows = source.select(
            f"SELECT toString({self._quoted('name')}) AS kernel, toFloat64({counted}) AS n "
            f"FROM {self._table} WHERE {self._within()} GROUP BY kernel ORDER BY n DESC, kernel "
            f"LIMIT {MAX_KERNELS}",
            self.bounds.parameters(),
        )
        return [(str(name), float(count)) for name, count in rows]

    def nothing(self, source: clickhouse.Database, now: datetime, where: str) -> ReportError:
        """Why there may be no row: another event kind, or rows still on their way."""
        kinds = source.select(
            f"SELECT toString({self._quoted('event')}) AS kind, toString(count()) "
            f"FROM {self._table} WHERE {self._within(event=False)} "
            "GROUP BY kind ORDER BY count() DESC LIMIT 10",
            self.bounds.parameters(),
        )
        since = now - self.bounds.end
        if since < INGEST_LAG:
            minutes = max(0, int((INGEST_LAG - since).total_seconds() // 60) + 1)
            what = (
                "no rows yet: the window has only just ended (or not ended), and ingest lags by "
                "minutes; this says nothing about what ran"
            )
            return ReportError(what, where=where, hint=f"ask again in {minutes} minutes")
        if kinds:
            present = ", ".join(f"{kind} ({count} rows)" for kind, count in kinds)
            return ReportError(
                f"no row of event kind {self.bounds.event!r}; these pods have {present}",
                where=where,
                hint="give one of these event kinds",
            )
        return ReportError(
            f"no row within the bounds ({self.bounds})",
            where=where,
            hint="check that the pod was profiled then, and the pattern (SQL LIKE, % is any text)",
        )

    def issues(
        self, kernels: int, parts: urllib.parse.SplitResult, environ: Mapping[str, str]
    ) -> list[Issue]:
        """What the reader of the shares should know."""
        found = []
        if kernels > MAX_KERNELS:
            what = f"about {kernels:,} names; the {MAX_KERNELS:,} most sampled are kept"
            found.append(Issue(code="names-cut", severity=Severity.WARNING, what=what))
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme == "clickhouse" and not local and clickhouse.PASSWORD_VARIABLE in environ:
            what = "the password went over plain HTTP; use clickhouses:// or a port-forward"
            found.append(Issue(code="plain-http", severity=Severity.WARNING, what=what))
        return found
