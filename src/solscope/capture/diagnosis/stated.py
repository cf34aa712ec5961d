"""The facts that code states, beside those that templates read: names and fields."""

from __future__ import annotations

from solscope.capture.diagnosis.options import OPTIONS

_SHARES = ("within-peak", "just-above-peak", "above-peak")
_FIGURE = {"kernel", "rate", "pct", "peak", "dtype", "key", "gpu"}

_OWN: dict[str, set[str]] = {
    # of a command line (command.py)
    "command": {"tool", "target"},
    "wrapper": {"name", "real"},
    "unknown-option": {"name", "nearest"},
    "option-too-new": {"name", "since", "version"},
    "option-removed": {"name", "gone", "version", "instead"},
    "default-application-only": {"version"},
    "nvtx-plain-name": {"name"},
    "kernel-exact-name": {"name", "regex"},
    "kernel-name-of-template": {"name"},
    "target-is-server": {"name"},
    "target-is-shell-script": {"name"},
    "target-many-ranks": {"name", "ranks"},
    "output-folder": {"path"},
    "output-without-extension": {"path"},
    "launch-count-not-positive": {"value"},
    "broken-command": {"why"},
    "no-command-given": {"why"},
    # derived from other facts (derivation.py)
    "counters-locked": {"node"},
    "counters-open": {"node"},
    "node-settings-differ": {"here", "there"},
    "has-sys-admin": {"mask"},
    "no-sys-admin": {"mask"},
    "unfinished-kernel": {"kernel", "waits"},
    "collective-kernel": {"kernel"},
    "all-passes-done": {"kernel", "count"},
    "chip-not-listed": {"chip"},
    "gpu-process-outside-tree": {"pid", "name"},
    "copy-is-short": {"whole", "got", "missing"},
    "probe-kill-time": {"seconds", "probe"},
    "cuda-skew": {"runtime", "driver"},
    "ncu-older-than-driver": {"ncu", "driver", "needs"},
    "other-gpu-process": {"pid", "name"},
    "log-without-table": {"file"},
    "empty-trace": {"name"},
    "capture-outlasts-connection": {"capture", "idle"},
    "fewer-ranks": {"capture", "production"},
    "option-typo": {"given", "nearest"},
    "set-without-roofline": {"name"},
    "no-gpu-requested": {"container"},
    "no-writable-tmp": {"container"},
    "debug-container-without-ptrace": {"name"},
    "device-memory-free-share": {"percent", "free", "total"},
    # of stated figures (figures.py)
    **{f"figure-{share}": _FIGURE for share in _SHARES},
    **{f"bandwidth-{share}": {"kernel", "rate", "pct", "peak", "source"} for share in _SHARES},
    **{f"advertised-{share}": {"measured", "advertised", "pct"} for share in _SHARES},
    "figure-sparse-peak": {*_FIGURE, "stated"},
    "figure-without-peak": {"kernel", "dtype", "gpu"},
    "figure-ran-as-tf32": {"kernel", "rate", "pct", "peak", "scalar", "active"},
    "figure-tf32-likely": {"kernel", "rate", "pct", "peak", "scalar"},
    "lookup-table": {"table", "rows", "tokens", "bytes", "all"},
    # of a report (reporting.py)
    "report-empty": {"path"},
    "report-newer": {"report", "local"},
    "empty-file": {"file"},
    "table-columns": {"names"},
    "metric-not-in-table": {"names"},
    "clock-controls-differ": {"values"},
    "launch-count-beyond": {"asked", "skip", "seen", "where"},
    "window-launches": {"count", "what"},
    "timeline-without-kernels": {"path", "why", "remedy"},
    "window-without-match": {"wanted", "found"},
    "report-cut": {"path"},
    "report-only-ranges": {"path", "kind"},
    "report-one-launch-each": {"kernel", "configurations"},
    "report-clock-base": {"path", "clock", "max"},
    "report-cold-cache": {"path"},
    "report-metrics-absent": {"path", "count", "example"},
    "report-no-flop-counters": {"path"},
    "report-other-kernels": {"wanted", "found"},
    "report-devices": {"path", "devices"},
    "report-ordinals": {"path", "ordinals"},
    "report-other-device": {"wanted", "found"},
    "report-well": {"path", "count"},
}

STATED: dict[str, set[str]] = {
    **_OWN,
    "unknown-error": {"text"},
    "unknown-warning": {"text"},
    **{f"opt-{name}": {"value"} for name in OPTIONS},
}
