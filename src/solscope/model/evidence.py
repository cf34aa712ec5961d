"""What a capture leaves behind: artifacts, receipts, the manifest of a bundle, its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

MANIFEST_SCHEMA = "solscope.bundle/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One file of a bundle: its path inside it (``/`` between folders), its digest, its size."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of one step, failures included.

    ``command`` is the command line as it was recorded, secrets masked. ``exit_status`` is
    ``None`` where the step was no command, or never ended. ``is_ok`` says whether the step did
    what it was for; ``message`` what it found; ``objects`` cluster objects that it made or
    removed, as ``kind/name``; ``run`` the capture that it was a step of.
    """

    step: str
    begun: datetime
    ended: datetime
    is_ok: bool
    command: str | None = None
    exit_status: int | None = None
    message: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    objects: tuple[str, ...] = ()
    run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleManifest:
    """The digests of every file of a sealed bundle, by path, and when it was sealed."""

    experiment: str
    sealed_at: datetime
    artifacts: tuple[Artifact, ...]
    schema: str = MANIFEST_SCHEMA


class ChangeKind(StrEnum):
    """How a file differs from the manifest."""

    CHANGED = "changed"
    MISSING = "missing"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleChange:
    """One difference between a sealed bundle and its manifest."""

    kind: ChangeKind
    path: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSource:
    """Who made a bundle, where, from which commit, and what for. ``None``: not stated."""

    experiment: str
    family: str
    intent: str | None = None
    who: str | None = None
    where: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementContext:
    """What a number must be read with. ``None`` means not known, never a default.

    ``isl_tokens`` and ``osl_tokens`` are input and output lengths of a request; ``clock_control``,
    ``cache_control`` and ``replay_mode`` are ncu's own words. ``sections`` hold more of a
    campaign's context, by its own sections and names.
    """

    gpu: str | None = None
    gpu_count: int | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    image: str | None = None
    model: str | None = None
    data_type: str | None = None
    tensor_parallel: int | None = None
    isl_tokens: int | None = None
    osl_tokens: int | None = None
    concurrency: int | None = None
    ncu_version: str | None = None
    clock_control: str | None = None
    cache_control: str | None = None
    replay_mode: str | None = None
    extra: Mapping[str, str] | None = None
    sections: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
