"""A minimal protobuf schema of our own for the messages of a report.

Everything is optional, enums are integers, text is bytes (a damaged file must not fail on an
encoding), and what is decoded later is declared as bytes: a nested message is length-delimited
on the wire exactly like bytes, so metrics, sections and rules stay raw until asked for.
Unknown fields are ignored. Field numbers are interface facts of the documented file format.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

# message -> {field name: (number, type)}; "*" marks a repeated field, "=X" a nested message.
_SCHEMA: dict[str, dict[str, tuple[int, str]]] = {
    "FileHeader": {"version": (1, "u32")},
    "BlockHeader": {
        "num_sources": (1, "u32"),
        "num_results": (2, "u32"),
        "session": (3, "bytes"),
        "strings": (4, "bytes"),
        "payload_size": (5, "u32"),
        "process": (6, "bytes"),
        "num_ranges": (7, "u32"),
        "num_cmdlists": (8, "u32"),
        "num_graphs": (9, "u32"),
        "num_graph_structures": (10, "u32"),
    },
    "StringTable": {"strings": (1, "*bytes")},
    "Process": {"process_id": (1, "u32"), "host_name": (2, "bytes"), "name": (3, "bytes")},
    "Dim3": {"x": (1, "u64"), "y": (2, "u64"), "z": (3, "u64")},
    "Kernel": {
        "mangled": (5, "bytes"),
        "function": (6, "bytes"),
        "demangled": (7, "bytes"),
        "grid": (10, "=Dim3"),
        "block": (11, "=Dim3"),
        "metrics": (13, "*bytes"),
        "source": (15, "bytes"),
        "sections": (17, "*bytes"),
        "rules": (19, "*bytes"),
        "nvtx": (21, "bytes"),
        "context_id": (22, "u32"),
        "stream_id": (23, "u32"),
        "renamed": (31, "bytes"),
    },
    "Range": {
        "metrics": (4, "*bytes"),
        "sections": (7, "*bytes"),
        "nvtx": (10, "bytes"),
        "context_id": (11, "u32"),
    },
    "Cmdlist": {
        "metrics": (4, "*bytes"),
        "sections": (7, "*bytes"),
        "nvtx": (10, "bytes"),
        "context_id": (11, "u32"),
        "stream_id": (12, "u32"),
        "display_name": (18, "bytes"),
        "rules": (21, "*bytes"),
    },
    "Graph": {
        "metrics": (4, "*bytes"),
        "sections": (7, "*bytes"),
        "nvtx": (10, "bytes"),
        "context_id": (11, "u32"),
        "stream_id": (12, "u32"),
        "rules": (22, "*bytes"),
    },
    "SourceReference": {"reference": (1, "u64")},
    "Value": {
        "text": (1, "bytes"),
        "float": (2, "float"),
        "double": (3, "double"),
        "uint32": (4, "u32"),
        "uint64": (5, "u64"),
    },
    "Element": {
        "correlation_id": (1, "=Value"),
        "value": (2, "=Value"),
        "packed": (3, "*=Value"),
    },
    "Metric": {"name_id": (1, "u32"), "value": (2, "=Value"), "elements": (3, "*=Element")},
    "SectionMetric": {"name": (1, "bytes"), "label": (2, "bytes"), "unit": (5, "bytes")},
    "SectionHeader": {"metrics": (2, "*=SectionMetric")},
    "SectionMetrics": {"metrics": (1, "*=SectionMetric")},
    "Section": {
        "identifier": (1, "bytes"),
        "display_name": (2, "bytes"),
        "order": (3, "u32"),
        "header": (4, "=SectionHeader"),
        "metrics": (6, "=SectionMetrics"),
    },
    "RuleMessage": {"message": (1, "bytes"), "type": (2, "u32"), "name": (4, "bytes")},
    "RuleSpeedup": {"type": (1, "u32"), "value": (2, "double")},
    "RuleItem": {"message": (1, "=RuleMessage"), "speedup": (10, "=RuleSpeedup")},
    "RuleBody": {"items": (1, "*=RuleItem")},
    "Rule": {
        "identifier": (1, "bytes"),
        "display_name": (2, "bytes"),
        "body": (3, "=RuleBody"),
        "section": (4, "bytes"),
    },
    "NvtxText": {"message": (2, "bytes"), "handle": (3, "u64")},
    "NvtxAttributes": {"message": (5, "=NvtxText")},
    "NvtxPushed": {"name": (1, "bytes"), "attributes": (2, "=NvtxAttributes")},
    "NvtxStarted": {"name": (2, "bytes"), "attributes": (3, "=NvtxAttributes")},
    "NvtxPushDomain": {"id": (1, "u64"), "stack": (3, "*=NvtxPushed")},
    "NvtxStartDomain": {"id": (1, "u64"), "ranges": (3, "*=NvtxStarted")},
    "NvtxString": {"id": (1, "u64"), "value": (2, "bytes")},
    "NvtxDomain": {"id": (1, "u64"), "name": (2, "bytes"), "strings": (3, "*=NvtxString")},
    "NvtxThread": {"thread_id": (1, "u32"), "domains": (2, "*=NvtxPushDomain")},
    "Nvtx": {
        "domains": (1, "*=NvtxDomain"),
        "threads": (2, "*=NvtxThread"),
        "started": (3, "*=NvtxStartDomain"),
    },
    "IPAddress": {"address": (1, "bytes")},
    "System": {
        "os_name": (1, "bytes"),
        "computer_name": (5, "bytes"),
        "ip_addresses": (7, "*=IPAddress"),
    },
    "Attribute": {"name": (1, "bytes"), "value": (2, "=Value")},
    "DeviceAttributes": {"id": (1, "u32"), "name": (2, "bytes"), "attributes": (3, "*=Attribute")},
    "Version": {"provider": (1, "bytes"), "version": (2, "bytes")},
    "Executable": {"path": (1, "bytes"), "directory": (2, "bytes"), "arguments": (3, "bytes")},
    "Filter": {"count": (6, "u32")},
    "Settings": {
        "filter": (5, "=Filter"),
        "clock_control": (8, "bytes"),
        "replay_mode": (11, "bytes"),
    },
    "Session": {
        "process_id": (1, "u32"),
        "created": (2, "u64"),
        "host": (3, "=System"),
        "target": (4, "=System"),
        "devices": (6, "*=DeviceAttributes"),
        "versions": (8, "*=Version"),
        "executable": (9, "=Executable"),
        "settings": (10, "=Settings"),
        "command_line": (11, "bytes"),
    },
}

_PACKAGE = "solscope.ncu_rep"


@lru_cache(maxsize=1)
def messages() -> dict[str, Any]:
    """Message classes by name, built once. Heavy import: protobuf (upb)."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field_type = descriptor_pb2.FieldDescriptorProto
    scalar = {
        "u32": field_type.TYPE_UINT32,
        "u64": field_type.TYPE_UINT64,
        "float": field_type.TYPE_FLOAT,
        "double": field_type.TYPE_DOUBLE,
        "bytes": field_type.TYPE_BYTES,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="solscope/ncu_rep.proto", package=_PACKAGE, syntax="proto2"
    )
    for message_name, fields in _SCHEMA.items():
        message = file.message_type.add(name=message_name)
        for name, (number, kind) in fields.items():
            is_repeated = kind.startswith("*")
            kind = kind.lstrip("*")
            field = message.field.add(
                name=name,
                number=number,
                label=field_type.LABEL_REPEATED if is_repeated else field_type.LABEL_OPTIONAL,
            )
            if kind.startswith("="):
                field.type = field_type.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind[1:]}"
            else:
                field.type = scalar[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _SCHEMA
    }
