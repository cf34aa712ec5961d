"""How far GPU kernels stand from the speed of light, what holds them back, and the proof.

>>> import solscope
>>> report = solscope.read("YOUR.ncu-rep")            # doctest: +SKIP
>>> analysis = solscope.analyze([report])             # doctest: +SKIP
>>> analysis.kernels[0].verdict.bound                 # doctest: +SKIP
'dram'

bytes -> ``reports`` (Report) -> ``analysis`` (Analysis) -> ``render`` (page). The public names
live in ``solscope.api`` and are loaded when first used, so that ``import solscope`` is cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from solscope.api import analyze as analyze
    from solscope.api import read as read

__version__ = "0.1.0"
__all__ = ["__version__", "analyze", "read"]


def __getattr__(name: str) -> object:
    if name in ("analyze", "read"):
        from solscope import api

        return getattr(api, name)
    raise AttributeError(f"module 'solscope' has no attribute {name!r}")
