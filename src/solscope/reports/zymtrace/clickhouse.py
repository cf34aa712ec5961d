"""The one door to a ClickHouse server: SELECT over HTTP, read-only, parameters bound by it."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from solscope.errors import ReportError

TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 64 << 20

USER_VARIABLE = "SOLSCOPE_CLICKHOUSE_USER"
PASSWORD_VARIABLE = "SOLSCOPE_CLICKHOUSE_PASSWORD"  # the variable's name, no secret


class Database(Protocol):
    """What a query needs of a database."""

    def select(self, sql: str, parameters: Mapping[str, str]) -> list[list[Any]]:
        """The rows of one SELECT; ``{x:String}`` in it is bound to the parameter ``x``."""
        ...


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the credentials to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class HttpDatabase:
    """ClickHouse's HTTP interface.

    Queries go by GET, for which the server itself allows reading only. Credentials travel in
    headers and stand in no message.
    """

    address: str  # http(s)://host:port
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def select(self, sql: str, parameters: Mapping[str, str]) -> list[list[Any]]:
        """Raises ReportError where the server is not reached, refuses, or answers oddly."""
        if not sql.lstrip().upper().startswith("SELECT ") or ";" in sql:
            raise ValueError("only a single SELECT is ever sent")
        arguments = {"query": f"{sql} FORMAT JSONCompactEachRow"}
        arguments |= {f"param_{name}": value for name, value in parameters.items()}
        request = urllib.request.Request(f"{self.address}/?{urllib.parse.urlencode(arguments)}")
        if self.user is not None:
            request.add_header("X-ClickHouse-User", self.user)
        if self.password is not None:
            request.add_header("X-ClickHouse-Key", self.password)
        return self._rows(self._answer(request))

    def _answer(self, request: urllib.request.Request) -> bytes:
        opener = urllib.request.build_opener(_NoRedirect)
        try:
            with opener.open(request, timeout=TIMEOUT_S) as response:
                answer: bytes = response.read(MAX_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ReportError(
                f"the server is not reached: {reason}",
                where=self.address,
                hint="forward its HTTP port (8123) first, for example with kubectl port-forward",
            ) from error
        if len(answer) > MAX_ANSWER_BYTES:
            raise ReportError("the answer is larger than 64 MiB", where=self.address)
        return answer

    def _refusal(self, error: urllib.error.HTTPError) -> ReportError:
        text = error.read(2000).decode("utf-8", "replace").partition("\n")[0][:300]
        denied = error.code in (401, 403) or "AUTHENTICATION_FAILED" in text
        hint = (
            f"set {USER_VARIABLE} and {PASSWORD_VARIABLE} in the environment"
            if denied
            else "look at the table with clickhouse-client, and narrow the bounds"
        )
        return ReportError(
            f"the server answered {error.code}: {text}", where=self.address, hint=hint
        )

    def _rows(self, answer: bytes) -> list[list[Any]]:
        try:
            return [msgspec.json.decode(line, type=list[Any]) for line in answer.splitlines()]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ReportError(
                "the answer is not ClickHouse's", where=self.address, hint="check host and port"
            ) from error
