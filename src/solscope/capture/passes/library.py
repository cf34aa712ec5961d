"""NVIDIA's host library: metric names of a chip, and the passes that a list of them takes.

Needs neither a GPU nor a driver. The library is ``libnvperf_host.so`` of the package
``nvidia-cuda-cupti`` (extra ``passes``); the layouts below are those of ``nvperf_host.h`` and
``nvperf_cuda_host.h``, which the same package ships. Every call takes one struct whose first
field is its own size, counted to the end of the last field without padding.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from solscope.errors import CaptureError

_SIZE = ctypes.c_size_t
_POINTER = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_BYTE = ctypes.c_uint8

PACKAGE = "nvidia-cuda-cupti"
_PROFILER = 1  # NVPA_ACTIVITY_KIND_PROFILER, the kind that ncu's kernel replay uses
_COUNTER, _RATIO, _THROUGHPUT = 0, 1, 2

Field = tuple[str, Any]


class _EvalRequest(ctypes.Structure):
    _fields_ = (
        ("metricIndex", _SIZE),
        ("metricType", _BYTE),
        ("rollupOp", _BYTE),
        ("submetric", ctypes.c_uint16),
    )


class _RawRequest(ctypes.Structure):
    _fields_ = (
        ("structSize", _SIZE),
        ("pPriv", _POINTER),
        ("pMetricName", _TEXT),
        ("isolated", _BYTE),
        ("keepInstances", _BYTE),
    )


_EVAL_REQUEST_SIZE = 12
_RAW_REQUEST_SIZE = 26


def installed() -> Path | None:
    """Where the library lies in this Python's packages, or None."""
    from importlib import metadata

    try:
        files = metadata.files(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        return None
    for entry in files:
        if entry.name.startswith("libnvperf_host.so"):
            path = Path(str(entry.locate()))
            if path.is_file():
                return path
    return None


def version() -> str:
    """``nvidia-cuda-cupti 13.4.92``, for the record beside each figure."""
    from importlib import metadata

    return f"{PACKAGE} {metadata.version(PACKAGE)}"


@cache
def _struct(fields: tuple[Field, ...]) -> tuple[Any, int]:
    """(struct type, its size to the end of the last field)."""
    layout = (("structSize", _SIZE), ("pPriv", _POINTER), *fields)
    struct = type("Parameters", (ctypes.Structure,), {"_fields_": layout})
    last_name, last_kind = layout[-1]
    return struct, getattr(struct, last_name).offset + ctypes.sizeof(last_kind)


class Library:
    """The loaded library. Raises CaptureError where it refuses a call."""

    def __init__(self, path: Path) -> None:
        try:
            self._dll = ctypes.CDLL(str(path))
        except OSError as error:
            raise CaptureError(
                f"the pass library cannot be loaded: {error}",
                where=path.name,
                hint="the shipped table is used when the package is not installed",
            ) from error
        self.call("NVPW_InitializeHost")

    def call(self, name: str, *fields: tuple[str, Any, Any]) -> Any:
        """Call ``name`` with a struct of ``fields`` (name, C type, value) and return it."""
        parameters = self._parameters(fields)
        status = getattr(self._dll, name)(ctypes.byref(parameters))
        if status != 0:
            raise CaptureError(f"{name} answered status {status}", where=PACKAGE)
        return parameters

    def succeeds(self, name: str, *fields: tuple[str, Any, Any]) -> bool:
        """Whether the call answers 'success'; for questions whose 'no' is an error code."""
        parameters = self._parameters(fields)
        return bool(getattr(self._dll, name)(ctypes.byref(parameters)) == 0)

    @staticmethod
    def _parameters(fields: Sequence[tuple[str, Any, Any]]) -> Any:
        struct, size = _struct(tuple((name, kind) for name, kind, _ in fields))
        parameters = struct()
        for name, _, value in fields:
            if value is not None:
                setattr(parameters, name, value)
        parameters.structSize = size
        return parameters

    def chips(self) -> tuple[str, ...]:
        """Names of the chips that the library knows, such as ``GH100``."""
        answer = self.call(
            "NVPW_GetSupportedChipNames",
            ("ppChipNames", ctypes.POINTER(_TEXT), None),
            ("numChipNames", _SIZE, 0),
        )
        return tuple(answer.ppChipNames[i].decode() for i in range(answer.numChipNames))


class ChipCounters:
    """One chip's metrics, and the scheduler of its counters."""

    def __init__(self, library: Library, chip: str) -> None:
        self._library = library
        self._chip = chip.encode()
        size = library.call(
            "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize",
            ("pChipName", _TEXT, self._chip),
            ("pCounterAvailabilityImage", _POINTER, None),
            ("scratchBufferSize", _SIZE, 0),
        ).scratchBufferSize
        self._scratch = ctypes.create_string_buffer(size)  # must outlive the evaluator
        self._evaluator = library.call(
            "NVPW_CUDA_MetricsEvaluator_Initialize",
            ("pScratchBuffer", _POINTER, ctypes.cast(self._scratch, _POINTER)),
            ("scratchBufferSize", _SIZE, size),
            ("pChipName", _TEXT, self._chip),
            ("pCounterAvailabilityImage", _POINTER, None),
            ("pCounterDataImage", _POINTER, None),
            ("counterDataImageSize", _SIZE, 0),
            ("pMetricsEvaluator", _POINTER, None),
        ).pMetricsEvaluator

    def base_names(self) -> dict[str, tuple[str, ...]]:
        """Every metric of the chip without suffix, by ``counter``, ``ratio``, ``throughput``."""
        kinds = {"counter": _COUNTER, "ratio": _RATIO, "throughput": _THROUGHPUT}
        return {word: self._names(kind) for word, kind in kinds.items()}

    def _names(self, kind: int) -> tuple[str, ...]:
        answer = self._library.call(
            "NVPW_MetricsEvaluator_GetMetricNames",
            ("pMetricsEvaluator", _POINTER, self._evaluator),
            ("metricType", _BYTE, kind),
            ("pMetricNames", _POINTER, None),
            ("pMetricNameBeginIndices", ctypes.POINTER(_SIZE), None),
            ("numMetrics", _SIZE, 0),
        )
        begins = answer.pMetricNameBeginIndices
        return tuple(
            ctypes.string_at(answer.pMetricNames + begins[i]).decode()
            for i in range(answer.numMetrics)
        )

    def has(self, metric: str) -> bool:
        """Whether the full name (with rollup and suffix) exists on this chip."""
        return self._request(metric) is not None

    def _request(self, metric: str) -> _EvalRequest | None:
        request = _EvalRequest()
        found = self._library.succeeds(
            "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
            ("pMetricsEvaluator", _POINTER, self._evaluator),
            ("pMetricName", _TEXT, metric.encode()),
            ("pMetricEvalRequest", _POINTER, ctypes.addressof(request)),
            ("metricEvalRequestStructSize", _SIZE, _EVAL_REQUEST_SIZE),
        )
        return request if found else None

    def raw_counters(self, metric: str) -> tuple[str, ...]:
        """The hardware counters that the metric is computed from; none for a constant.

        Raises CaptureError when the chip has no such metric.
        """
        request = self._request(metric)
        if request is None:
            raise CaptureError(f"no metric {metric!r}", where=self._chip.decode())
        count = self._dependencies(request, None, 0).numRawDependencies
        names = (_TEXT * max(count, 1))()
        self._dependencies(request, names, count)
        return tuple(sorted({names[i].decode() for i in range(count)}))

    def _dependencies(self, request: _EvalRequest, names: Any, count: int) -> Any:
        return self._library.call(
            "NVPW_MetricsEvaluator_GetMetricRawDependencies",
            ("pMetricsEvaluator", _POINTER, self._evaluator),
            ("pMetricEvalRequests", _POINTER, ctypes.addressof(request)),
            ("numMetricEvalRequests", _SIZE, 1),
            ("metricEvalRequestStructSize", _SIZE, _EVAL_REQUEST_SIZE),
            ("metricEvalRequestStrideSize", _SIZE, ctypes.sizeof(_EvalRequest)),
            ("ppRawDependencies", _POINTER, ctypes.cast(names, _POINTER) if names else None),
            ("numRawDependencies", _SIZE, count),
            ("ppOptionalRawDependencies", _POINTER, None),
            ("numOptionalRawDependencies", _SIZE, 0),
        )

    def passes_of_counters(self, raw: Iterable[str]) -> int:
        """Passes that the scheduler needs for these hardware counters together.

        Counters that cannot stand in one configuration (some L2 counters of consumer Blackwell)
        are scheduled in halves and added up. Raises CaptureError for one that is refused alone.
        """
        names = sorted(set(raw))
        if not names:
            return 0
        try:
            return self._passes(names)
        except CaptureError:
            if len(names) == 1:
                raise
        middle = len(names) // 2
        return self.passes_of_counters(names[:middle]) + self.passes_of_counters(names[middle:])

    def _passes(self, names: Sequence[str]) -> int:
        config = self._library.call(
            "NVPW_CUDA_RawMetricsConfig_Create_V2",
            ("activityKind", ctypes.c_int, _PROFILER),
            ("pChipName", _TEXT, self._chip),
            ("pCounterAvailabilityImage", _POINTER, None),
            ("pRawMetricsConfig", _POINTER, None),
        ).pRawMetricsConfig
        try:
            return self._scheduled(config, names)
        finally:
            self._library.call(
                "NVPW_RawMetricsConfig_Destroy", ("pRawMetricsConfig", _POINTER, config)
            )

    def _scheduled(self, config: Any, names: Sequence[str]) -> int:
        call, handle = self._library.call, ("pRawMetricsConfig", _POINTER, config)
        call("NVPW_RawMetricsConfig_BeginPassGroup", handle, ("maxPassCount", _SIZE, 2**32))
        requests = (_RawRequest * len(names))()
        for request, name in zip(requests, names, strict=True):
            request.structSize = _RAW_REQUEST_SIZE
            request.pMetricName = name.encode()
            request.isolated = 1
            request.keepInstances = 1
        call(
            "NVPW_RawMetricsConfig_AddMetrics",
            handle,
            ("pRawMetricRequests", _POINTER, ctypes.addressof(requests)),
            ("numMetricRequests", _SIZE, len(names)),
        )
        call("NVPW_RawMetricsConfig_EndPassGroup", handle)
        call(
            "NVPW_RawMetricsConfig_GenerateConfigImage",
            handle,
            ("mergeAllPassGroups", _BYTE, 1),
        )
        answer = call("NVPW_RawMetricsConfig_GetNumPasses_V2", handle, ("numPasses", _SIZE, 0))
        return int(answer.numPasses)
