"""Launches in, work, bytes and time per kernel out.

``counters`` reads one launch's metrics, ``tensor`` its tensor work, ``peaks`` the peaks that
the report states, ``occupancy`` what limits it; ``totals`` sums launches of the same kernel.
"""

from __future__ import annotations

from solscope.analysis.work.totals import total

__all__ = ["total"]
