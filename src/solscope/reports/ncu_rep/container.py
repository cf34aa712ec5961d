"""Framing: bytes in, blocks out. Decides where a file ends early; decodes no result."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from solscope.errors import ReportError
from solscope.model.finding import Issue, Severity
from solscope.model.report import WorkloadKind
from solscope.reports import reader
from solscope.reports.ncu_rep import schema

MAGIC = b"NVR\x00"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_U32 = struct.Struct("<I")
SUPPORTED_VERSION = 7  # every known file from 2019 to 2026

INCOMPLETE = "incomplete"


@dataclass(slots=True)
class Span:
    """One length-prefixed entry of a payload: its bytes, its kind, its block's process."""

    data: memoryview
    kind: WorkloadKind | None  # None: a source
    process: bytes


@dataclass(slots=True)
class Scan:
    """Everything that the framing tells."""

    blocks: int = 0
    is_cut: bool = False
    strings: list[bytes] = field(default_factory=list)
    session: list[bytes] = field(default_factory=list)
    results: list[Span] = field(default_factory=list)
    sources: list[Span] = field(default_factory=list)
    ends_with_source: bool = False
    ends_with_result: bool = False
    issues: list[Issue] = field(default_factory=list)


def unfold(data: bytes, path: str) -> tuple[bytes, str, list[Issue]]:
    """The plain container: a ``.ncu-repz`` is one zstd frame around the whole file."""
    if not data.startswith(ZSTD_MAGIC):
        return data, "ncu-rep", []
    import zstandard

    limit = reader.expansion_limit(len(data))
    chunks: list[bytes] = []
    size = 0
    engine = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    step = 1 << 16
    try:
        for start in range(0, len(data), step):
            chunk = engine.decompress(data[start : start + step])
            size += len(chunk)
            if size > limit:
                raise ReportError(
                    f"the zstd frame unfolds to more than {limit} bytes",
                    where=path,
                    hint="the file is damaged, or not a report",
                )
            chunks.append(chunk)
            if engine.eof:
                break
    except zstandard.ZstdError as error:
        if size < len(MAGIC):
            raise ReportError(
                f"the zstd frame is damaged: {error}", where=path, hint="copy the file again"
            ) from error
        return b"".join(chunks), "ncu-repz", [cut(f"the zstd frame is damaged: {error}")]
    plain = b"".join(chunks)
    if not engine.eof and len(plain) < len(MAGIC):
        raise ReportError(
            "the zstd frame ends before its first block does",
            where=path,
            hint="copy the file again",
        )
    if not plain.startswith(MAGIC):
        raise ReportError(
            "a zstd file, but not of an ncu report", where=path, hint=reader.NEXT_STEP
        )
    issues = [] if engine.eof else [cut("the zstd frame ends early")]
    return plain, "ncu-repz", issues


def scan(plain: bytes, path: str) -> Scan:
    """Walk the blocks. A block that does not fit in the file ends the walk and is reported."""
    header_end = _file_header(plain, path)
    result = Scan()
    view = memoryview(plain)
    header_type = schema.messages()["BlockHeader"]
    position = header_end
    total = len(plain)
    while position < total:
        block = _block(plain, view, position, header_type)
        if block is None:
            result.is_cut = True
            result.issues.append(
                cut(f"block {result.blocks} at byte {position} runs past the end of the file")
            )
            break
        header, payload = block
        _take(result, header, payload, path)
        position = payload.obj_end
    return result


@dataclass(slots=True)
class _Payload:
    view: memoryview
    obj_end: int


def _file_header(plain: bytes, path: str) -> int:
    if len(plain) < 8:
        raise ReportError(
            f"the file ends after {len(plain)} bytes, inside its header",
            where=path,
            hint="the copy or the capture was cut; fetch it again",
        )
    (length,) = _U32.unpack_from(plain, 4)
    end = 8 + int(length)
    if length > 4096 or end > len(plain):
        raise ReportError(
            "the file header does not fit in the file",
            where=path,
            hint="the copy or the capture was cut or damaged; fetch it again",
        )
    header = parse(schema.messages()["FileHeader"], plain[8:end])
    if header is None or header.version != SUPPORTED_VERSION:
        version = "unreadable" if header is None else header.version
        raise ReportError(
            f"report container version {version}; this reader knows {SUPPORTED_VERSION}",
            where=path,
            hint="the file is damaged, or written by a newer ncu; please report it",
        )
    return end


def _block(
    plain: bytes, view: memoryview, position: int, header_type: Any
) -> tuple[Any, _Payload] | None:
    if position + 4 > len(plain):
        return None
    (length,) = _U32.unpack_from(plain, position)
    start = position + 4
    if start + length > len(plain):
        return None
    header = parse(header_type, plain[start : start + length])
    if header is None:
        return None
    begin = start + length
    end = begin + header.payload_size
    if end > len(plain):
        return None
    return header, _Payload(view[begin:end], end)


def _take(result: Scan, header: Any, payload: _Payload, path: str) -> None:
    result.blocks += 1
    result.ends_with_result = False
    if header.HasField("session"):
        result.session.append(header.session)
    if header.HasField("strings"):
        table = parse(schema.messages()["StringTable"], header.strings)
        if table is None:
            result.issues.append(_damaged(f"string table of block {result.blocks - 1}"))
        else:
            result.strings.extend(table.strings)
    for span in _spans(header, payload.view, result):
        if span.kind is None:
            result.sources.append(span)
            result.ends_with_source, result.ends_with_result = True, False
        else:
            result.results.append(span)
            result.ends_with_source, result.ends_with_result = False, True
    if header.num_graph_structures:
        result.ends_with_source = True


def _spans(header: Any, payload: memoryview, result: Scan) -> Iterator[Span]:
    kinds: list[tuple[WorkloadKind | None, int]] = [
        (None, header.num_sources),
        (WorkloadKind.KERNEL, header.num_results),
        (WorkloadKind.RANGE, header.num_ranges),
        (WorkloadKind.CMDLIST, header.num_cmdlists),
        (WorkloadKind.GRAPH, header.num_graphs),
    ]
    position = 0
    process = header.process
    for kind, count in kinds:
        for _ in range(count):
            if position + 4 > len(payload):
                result.issues.append(
                    _damaged(f"block {result.blocks - 1} holds fewer entries than it states")
                )
                result.is_cut = True
                return
            (length,) = _U32.unpack_from(payload, position)
            begin = position + 4
            if begin + length > len(payload):
                result.issues.append(
                    _damaged(f"an entry of block {result.blocks - 1} runs past its block")
                )
                result.is_cut = True
                return
            yield Span(payload[begin : begin + length], kind, process)
            position = begin + length


def parse(message_type: Any, data: bytes | memoryview) -> Any:
    """The decoded message, or ``None`` where the bytes are not one."""
    from google.protobuf.message import DecodeError

    message = message_type()
    try:
        message.ParseFromString(data)  # reads a memoryview without a copy
    except DecodeError:
        return None
    return message


def cut(what: str) -> Issue:
    return Issue(
        code=INCOMPLETE,
        severity=Severity.WARNING,
        what=f"{what}: the report was cut; only its complete blocks are used",
    )


def _damaged(what: str) -> Issue:
    return Issue(code="damaged", severity=Severity.WARNING, what=f"{what}: left out")
