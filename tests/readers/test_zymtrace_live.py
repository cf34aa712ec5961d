"""The live query against ClickHouse's own engine (chdb) behind a small HTTP front."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from solscope.errors import ReportError, UsageError
from solscope.model.trace import SampleReport
from solscope.reports import zymtrace
from solscope.reports.zymtrace import clickhouse, live

BEGIN = datetime(2026, 1, 31, 10, 0, tzinfo=UTC)
BOUNDS = "pod=decode-%25&event=cuda&from=2026-01-31T10:00:00Z&to=2026-01-31T10:05:00Z"
LONG_AFTER = BEGIN + timedelta(hours=2)
SETUP = (
    "CREATE DATABASE zymtrace_profiling",
    "CREATE TABLE zymtrace_profiling.events (timestamp DateTime64(3, 'UTC'), pod_name String, "
    "event_kind LowCardinality(String), kernel_name String, count UInt64) "
    "ENGINE = MergeTree ORDER BY timestamp",
    "INSERT INTO zymtrace_profiling.events VALUES "
    "('2026-01-31 10:01:00.000', 'decode-1', 'cuda', 'fmha', 40), "
    "('2026-01-31 10:02:00.000', 'decode-2', 'cuda', 'fmha', 20), "
    "('2026-01-31 10:02:00.000', 'decode-2', 'cuda', 'it''s a gemm', 40), "
    "('2026-01-31 10:05:00.000', 'decode-2', 'cuda', 'too late', 999), "
    "('2026-01-31 10:02:00.000', 'prefill-1', 'cuda', 'other pod', 999), "
    "('2026-01-31 10:02:00.000', 'decode-1', 'on_cpu', 'python', 999)",
    "CREATE TABLE zymtrace_profiling.frames (timestamp DateTime64(3, 'UTC'), pod_name String, "
    "event_kind String, hash UInt64) ENGINE = Memory",
    "CREATE TABLE zymtrace_profiling.stamps (timestamp UInt64, pod_name String, "
    "event_kind String, kernel_name String) ENGINE = Memory",
    "CREATE VIEW zymtrace_profiling.many AS SELECT toDateTime64('2026-01-31 10:01:00', 3, 'UTC') "
    "AS timestamp, 'decode-1' AS pod_name, 'cuda' AS event_kind, 'k' AS kernel_name "
    "FROM numbers(10000001)",
)


class Front(BaseHTTPRequestHandler):
    """ClickHouse's HTTP interface as far as the client uses it: GET is read-only."""

    engine: ClassVar[Any] = None
    seen: ClassVar[list[str]] = []
    lock: ClassVar[threading.Lock] = threading.Lock()
    password: ClassVar[str | None] = None

    def do_GET(self) -> None:
        arguments = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        parameters = {k[6:]: v for k, v in arguments.items() if k.startswith("param_")}
        Front.seen.append(arguments["query"])
        if Front.password is not None and self.headers["X-ClickHouse-Key"] != Front.password:
            self.answer(403, "Code: 516. DB::Exception: default: AUTHENTICATION_FAILED")
            return
        try:
            with Front.lock:
                found = Front.engine.query(arguments["query"], params=parameters)
            self.answer(200, str(found))
        except RuntimeError as error:
            self.answer(500, str(error))

    def answer(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    session = pytest.importorskip(
        "chdb.session", reason="chdb, ClickHouse's engine as a module, is not installed"
    )
    engine = session.Session()
    for statement in SETUP:
        engine.query(statement)
    Front.engine = engine
    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()
    engine.close()


@pytest.fixture
def ask(port: int) -> Callable[..., SampleReport]:
    Front.seen.clear()
    Front.password = None

    def query(
        bounds: str = BOUNDS,
        *,
        table: str = "zymtrace_profiling.events",
        now: datetime = LONG_AFTER,
        mapping: dict[str, str] | None = None,
        environ: dict[str, str] | None = None,
    ) -> SampleReport:
        url = f"clickhouse://127.0.0.1:{port}/{table}?{bounds}"
        return live.query(url, mapping or {}, environ=environ or {}, now=lambda: now)

    return query


Ask = Callable[..., SampleReport]


def test_samples_within_the_three_bounds_are_summed_by_kernel(ask: Ask) -> None:
    report = ask()
    assert [(k.name, k.samples, k.share) for k in report.kernels()] == [
        ("fmha", 60.0, 0.6),
        ("it's a gemm", 40.0, 0.4),
    ]
    assert report.population is not None
    assert "pods like 'decode-%'" in report.population
    assert report.population.endswith("3 rows")


def test_the_schema_is_looked_at_first_and_the_cardinality_before_the_samples(ask: Ask) -> None:
    ask()
    assert ["system.columns" in sql for sql in Front.seen] == [True, False, False]
    assert "uniq(" in Front.seen[1]
    assert "GROUP BY" in Front.seen[2]
    assert all(sql.startswith("SELECT ") and ";" not in sql for sql in Front.seen)
    for sql in Front.seen[1:]:
        assert "LIKE {pod:String}" in sql
        assert "{event:String}" in sql
        assert "{begin:String}" in sql
        assert "{end:String}" in sql


@pytest.mark.parametrize("absent", ["pod", "event", "from", "to"])
def test_a_missing_bound_is_refused_before_anything_is_asked(ask: Ask, absent: str) -> None:
    rest = "&".join(part for part in BOUNDS.split("&") if not part.startswith(absent + "="))
    with pytest.raises(UsageError, match=f"not bounded: {absent} missing"):
        ask(rest)
    assert Front.seen == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("pod=decode-%25", "pod=%25", "bounds nothing"),
        ("10:05:00Z", "10:00:00Z", "ends before it begins"),
        ("10:05:00Z", "10:05:00", "states no time zone"),
        ("2026-01-31T10:05:00Z", "noon", "no time in ISO 8601"),
    ],
)
def test_an_open_bound_is_refused(ask: Ask, old: str, new: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ask(BOUNDS.replace(old, new))


def test_values_cannot_leave_their_parameter(ask: Ask) -> None:
    evil = BOUNDS.replace("event=cuda", "event=x'+OR+1=1+--+")
    with pytest.raises(ReportError, match="no row of event kind"):
        ask(evil)


def test_zero_rows_right_after_a_run_are_ingest_lag_not_nothing_ran(ask: Ask) -> None:
    later = BOUNDS.replace("T10:", "T11:")
    with pytest.raises(ReportError, match=r"no rows yet.*ingest lags") as caught:
        ask(later, now=BEGIN + timedelta(hours=1, minutes=7))
    assert caught.value.hint == "ask again in 14 minutes"


def test_zero_rows_of_an_event_kind_name_the_kinds_that_are_there(ask: Ask) -> None:
    with pytest.raises(ReportError, match=r"these pods have cuda \(3 rows\), on_cpu \(1 rows\)"):
        ask(BOUNDS.replace("event=cuda", "event=gpu"))


def test_zero_rows_long_after_say_which_bounds_held(ask: Ask) -> None:
    with pytest.raises(ReportError, match="no row within the bounds"):
        ask(BOUNDS.replace("decode", "nobody"))


def test_more_than_ten_million_rows_are_refused(ask: Ask) -> None:
    with pytest.raises(ReportError, match="10,000,001 rows within the bounds"):
        ask(table="zymtrace_profiling.many")
    assert len(Front.seen) == 2  # schema and count; no samples were read


def test_a_table_without_the_needed_columns_lists_what_it_has(ask: Ask) -> None:
    with pytest.raises(ReportError, match="no column for name; there are timestamp, pod_name"):
        ask(table="zymtrace_profiling.frames")
    with pytest.raises(ReportError, match="column timestamp is UInt64, not a DateTime"):
        ask(table="zymtrace_profiling.stamps")
    with pytest.raises(ReportError, match="no such table"):
        ask(table="zymtrace_profiling.nothing")


def test_columns_can_be_mapped(ask: Ask) -> None:
    report = ask(mapping={"name": "pod_name"})
    assert {k.name: k.samples for k in report.kernels()} == {"decode-1": 40.0, "decode-2": 60.0}


def test_credentials_come_from_the_environment_and_stand_nowhere(ask: Ask) -> None:
    Front.password = "open sesame"
    with pytest.raises(ReportError, match="the server answered 403") as caught:
        ask()
    assert clickhouse.PASSWORD_VARIABLE in str(caught.value)
    environ = {clickhouse.USER_VARIABLE: "me", clickhouse.PASSWORD_VARIABLE: "open sesame"}
    report = ask(environ=environ)
    assert report.total == 100.0
    assert "sesame" not in repr(report)
    assert "sesame" not in repr(clickhouse.HttpDatabase("http://x", "me", "open sesame"))


def test_credentials_in_an_address_are_refused() -> None:
    with pytest.raises(UsageError, match="credentials do not belong into an address"):
        zymtrace.read(f"clickhouse://me:secret@127.0.0.1:1/a.b?{BOUNDS}", "")


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ReportError, match="the server is not reached"):
        zymtrace.read(f"clickhouse://127.0.0.1:1/a.b?{BOUNDS}", "", environ={})


@pytest.mark.parametrize("sql", ["INSERT INTO x VALUES (1)", "SELECT 1; DROP TABLE x", "DROP x"])
def test_nothing_but_one_select_is_ever_sent(sql: str) -> None:
    with pytest.raises(ValueError, match="single SELECT"):
        clickhouse.HttpDatabase("http://127.0.0.1:1").select(sql, {})
