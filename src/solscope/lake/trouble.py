"""What the Delta library and its object store complain of, as one LakeError with the next step."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from solscope.errors import LakeError, SolscopeError

_TERMINAL_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 240
_LIBRARIES = ("deltalake", "duckdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A complaint by its words, what it means, and the next step."""

    words: str
    what: str
    hint: str


_KNOWN: Sequence[_Known] = (
    _Known(
        words=r"NoSuchBucket",
        what="there is no such bucket",
        hint="create it first; solscope creates no buckets",
    ),
    _Known(
        words=r"SignatureDoesNotMatch|InvalidAccessKeyId|InvalidClientTokenId|AccessDenied"
        r"|ExpiredToken|403 Forbidden|401 Unauthorized|lacked the necessary privileges"
        r"|credential|Unauthenticated",
        what="the object store refused these credentials, or there are none",
        hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; the lake is as it was",
    ),
    _Known(
        words=r"No space left|os error 28|File too large|os error 27|Disk quota|os error 122",
        what="no room left to write",
        hint="free some space and publish again; nothing of this publish is visible",
    ),
    _Known(
        words=r"Permission denied|os error 13|Read-only file system|os error 30",
        what="the folder may not be read or written",
        hint="check its owner and mode; the lake is as it was",
    ),
    _Known(
        words=r"tcp connect|dns error|Connection refused|client error \(Connect\)|timed out",
        what="the object store cannot be reached",
        hint="check AWS_ENDPOINT_URL, and AWS_ALLOW_HTTP=true for plain http",
    ),
    _Known(
        words=r"os error 2\b|NoSuchKey|404 Not Found",
        what="a file that the table's log names has gone",
        hint="restore it from a copy, or publish its campaign anew into a fresh lake",
    ),
    _Known(
        words=r"(?i)json|log segment|checkpoint|protocol action|metadata action|parquet|EOF",
        what="the table's log or a file of it is damaged",
        hint="nothing was written; restore the file that is named from a copy",
    ),
)


def require_libraries() -> None:
    """Raises LakeError where the libraries of the lake are not installed: they are an extra."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise LakeError(
            f"the lake needs {' and '.join(missing)}",
            hint="install the extra: pip install 'solscope[lake]'",
        )


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn what the libraries raise into a LakeError about ``where``, the cause chained."""
    try:
        yield
    except SolscopeError:
        raise
    except Exception as error:
        raise explain(error, where) from error


def explain(error: Exception, where: str) -> LakeError:
    """The LakeError for a complaint; its own words are kept in short where they are not known."""
    said = _one_line(str(error)) or type(error).__name__
    for known in _KNOWN:
        if re.search(known.words, str(error)):
            return LakeError(f"{known.what} ({said})", where=where, hint=known.hint)
    return LakeError(said, where=where, hint="the lake is as it was before")


def _one_line(text: str) -> str:
    # An object store's own answer follows as XML: it can hold key ids and is left out.
    plain = _TERMINAL_COLORS.sub("", text).split("<?xml")[0].split("<Error>")[0]
    line = " ".join(plain.replace("↳", "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
