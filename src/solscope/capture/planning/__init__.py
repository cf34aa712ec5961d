"""Question and facts in, capture plan out. Never counts passes, never asks a cluster."""

from __future__ import annotations

from solscope.capture.planning.decision import decide
from solscope.capture.planning.question import Facts, Question

__all__ = ["Facts", "Question", "decide"]
