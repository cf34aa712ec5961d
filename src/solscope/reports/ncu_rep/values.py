"""Metrics of one result, decoded when asked for.

A full report stores thousands of metrics per launch, most with long instance lists; an analysis
needs a hundred aggregates. So each metric stays the bytes it was, its name id is read on first
use, and a value is decoded when somebody asks for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from solscope.model.report import Instance, MetricValue
from solscope.reports.ncu_rep import schema

_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")

# Wire tags (number << 3 | type) of the metric message and of the value union inside it.
_NAME_ID, _VALUE = 0x08, 0x12
_TEXT, _FLOAT32, _FLOAT64, _UINT32, _UINT64 = 0x0A, 0x15, 0x19, 0x20, 0x28


class Strings:
    """The file's global string table. Ids may refer to strings that came in a later block."""

    __slots__ = ("_joined", "_starting", "names", "prefixes")

    def __init__(self, raw: Sequence[bytes]) -> None:
        self.names: list[str] = [text.decode("utf-8", "replace") for text in raw]
        # First bytes of a metric message -> its name. Launches of a report repeat the same few
        # thousand prefixes (tag, name id, tag and length of the value), so each is understood
        # once and later launches are indexed by look-ups.
        self.prefixes: dict[bytes, str] = {}
        self._joined = "\n" + "\n".join(self.names)
        self._starting: dict[str, tuple[str, ...]] = {}

    def name_of(self, message: bytes) -> str | None:
        """The name of a metric that is laid out as usual and has a value, else ``None``."""
        prefix = message[:_PREFIX_BYTES]
        if len(prefix) < _PREFIX_BYTES or prefix[0] != _NAME_ID:
            return None
        if prefix[1] < 128:
            name_id, at = prefix[1], 2
        else:
            # A third byte of the id makes the next test fail: its tag is not there yet.
            name_id, at = (prefix[1] & 127) | (prefix[2] << 7), 3
        if prefix[at] != _VALUE or not prefix[at + 1] or name_id >= len(self.names):
            return None
        name = self.prefixes[prefix] = self.names[name_id]
        return name

    def starting(self, prefix: str) -> tuple[str, ...]:
        """The names that start so, looked up once per file."""
        found = self._starting.get(prefix)
        if found is None:
            # Most prefixes are in no name at all, which one search tells.
            if f"\n{prefix}" in self._joined:
                found = tuple(dict.fromkeys(n for n in self.names if n.startswith(prefix)))
            else:
                found = ()
            self._starting[prefix] = found
        return found


_PREFIX_BYTES = 5


class LazyMetrics:
    """Metrics of a result over its raw messages. Satisfies ``model.report.Metrics``."""

    __slots__ = ("_index", "_raw", "_strings", "_unresolved", "_valueless")

    def __init__(self, raw: Sequence[bytes], strings: Strings) -> None:
        self._raw = raw
        self._strings = strings
        self._index: dict[str, bytes] | None = None
        self._valueless: dict[str, bytes] = {}
        self._unresolved = 0

    def _positions(self) -> dict[str, bytes]:
        """Name -> raw message, of every metric that has an aggregate."""
        if self._index is None:
            self._index = self._build()
        return self._index

    def _build(self) -> dict[str, bytes]:
        # Launches of a report repeat the same prefixes, so after the first launch whole columns
        # of look-ups do the work; what no look-up knows is understood one by one.
        raw = self._raw
        found = list(map(self._strings.prefixes.get, [message[:_PREFIX_BYTES] for message in raw]))
        index = dict(zip(found, raw, strict=True))
        if None not in index:
            return index  # type: ignore[return-value]
        del index[None]
        known: dict[str, bytes] = index  # type: ignore[assignment]
        for name, message in zip(found, raw, strict=True):
            if name is None:
                name = self._strings.name_of(message)
                if name is None:
                    self._odd(message, known)
                else:
                    known[name] = message
        return known

    def _odd(self, raw: bytes, index: dict[str, bytes]) -> None:
        """A metric without aggregate, or laid out in another way than ncu usually writes."""
        metric = _metric(raw)
        if metric is None or metric.name_id >= len(self._strings.names):
            self._unresolved += 1
            return
        name = self._strings.names[metric.name_id]
        if value_of(metric.value) is None:
            self._valueless[name] = raw
        else:
            index[name] = raw

    @property
    def unresolved(self) -> int:
        """Metrics whose name is in no string table of the file: their block was cut away."""
        self._positions()
        return self._unresolved

    def __getitem__(self, name: str) -> MetricValue:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._positions()

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions())

    def __len__(self) -> int:
        return len(self._positions())

    def get(self, name: str) -> MetricValue | None:
        """The aggregate value, or ``None`` where it is absent."""
        index = self._index if self._index is not None else self._positions()
        raw = index.get(name)
        return None if raw is None else _decode(raw)

    def starting(self, prefix: str) -> tuple[str, ...]:
        """Names with an aggregate that start so."""
        candidates = self._strings.starting(prefix)
        if not candidates:
            return ()
        index = self._positions()
        return tuple(name for name in candidates if name in index)

    def items(self) -> Iterator[tuple[str, MetricValue]]:
        """Every name with its aggregate."""
        unpack, double = _DOUBLE.unpack_from, bytes((9, _FLOAT64))
        for name, raw in self._positions().items():
            at = 2 if raw[1] < 128 else 3
            # Most values are doubles in the usual layout; the rest takes the long way.
            if len(raw) >= at + 11 and raw[at + 1 : at + 3] == double and raw[at] == _VALUE:
                yield name, unpack(raw, at + 3)[0]
            else:
                value = _decode(raw)
                if value is not None:
                    yield name, value

    def half_digit(self, name: str) -> float:
        """0: a report stores values whole."""
        return 0.0

    def valueless(self) -> tuple[str, ...]:
        """Names stored without an aggregate (some of them have instances)."""
        self._positions()
        return tuple(self._valueless)

    def instances(self, name: str) -> tuple[Instance, ...]:
        """The instances of the metric, empty where it has none."""
        raw = self._positions().get(name) or self._valueless.get(name)
        return () if raw is None else _instances(_metric(raw))


def _decode(raw: bytes) -> MetricValue | None:
    at = 2 if raw[1] < 128 else 3
    length, tag = raw[at + 1], raw[at + 2]
    # Only the usual layout is read by hand; anything else goes through the message.
    if raw[0] == _NAME_ID and raw[at] == _VALUE:
        begin = at + 3
        if tag == _FLOAT64 and length == 9 and begin + 8 <= len(raw):
            return float(_DOUBLE.unpack_from(raw, begin)[0])
        if tag == _FLOAT32 and length == 5 and begin + 4 <= len(raw):
            return float(_FLOAT.unpack_from(raw, begin)[0])
        if tag in (_UINT32, _UINT64) and length < 12 and at + 2 + length <= len(raw):
            value, end = _varint(raw, begin)
            if end == at + 2 + length:
                return value
    metric = _metric(raw)
    return None if metric is None else value_of(metric.value)


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    for at in range(position, min(position + 10, len(raw))):
        byte = raw[at]
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at + 1
        shift += 7
    return 1 << 64, position  # not a varint: an id that no table holds


def _metric(raw: bytes) -> Any:
    from google.protobuf.message import DecodeError

    metric = schema.messages()["Metric"]()
    try:
        metric.ParseFromString(raw)
    except DecodeError:
        return None
    return metric


def value_of(value: Any) -> MetricValue | None:
    """The one field of the value union that is set, or ``None``."""
    for field, content in value.ListFields():
        if field.name == "text":
            return bytes(content).decode("utf-8", "replace")
        return float(content) if field.name in ("float", "double") else int(content)
    return None


def _instances(metric: Any) -> tuple[Instance, ...]:
    if metric is None:
        return ()
    result: list[Instance] = []
    for element in metric.elements:
        key = value_of(element.correlation_id) if element.HasField("correlation_id") else None
        if element.packed:
            result.extend(Instance(key, value_of(value)) for value in element.packed)
        else:
            value = value_of(element.value) if element.HasField("value") else None
            result.append(Instance(key, value))
    return tuple(result)
