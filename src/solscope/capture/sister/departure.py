"""How the sister's pod goes when it is deleted under its server: at once, its GPU as it was.

A production pod that preempts it, a drain or its own deadline must not wait. The pod's grace
period is long, for results of a server that has ended by itself; and ncu, as the first process of
its container, is told nothing by a signal that it does not handle. A container that ends by itself
meets no hook.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from solscope.capture.sister import tooling
from solscope.model.sister import Action, Change

# As a process' own name stands in /proc: ncu, and what it was called before 2020.
_END_BELOW_NCU = r"""
own=" " below= grown=yes
for stat in /proc/[0-9]*/stat; do
  { read -r line <"$stat"; } 2>/dev/null || continue
  case $line in *"(ncu) "*|*"(nv-nsight-cu-cli) "*) own="$own${line%% *} ";; esac
done
while [ "$grown" ]; do
  grown=
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    pid=${line%% *} rest=${line##*) } rest=${rest#* } parent=${rest%% *}
    case $own in *" $pid "*) continue;; esac
    case $own in *" $parent "*) own="$own$pid " below="$below $pid" grown=yes;; esac
  done
done
[ -z "$below" ] || kill -KILL $below
"""


def script(ncu: str | None) -> str:
    """What the hook runs: nobody fetches results, the server ends, the clocks are freed.

    ``ncu`` is where it lies; ``None`` where no clock was locked.
    """
    # "Use if a previous, killed execution of ncu left the GPU clocks in a locked state."
    # NVIDIA, Nsight Compute CLI, --clock-control.
    reset = "" if ncu is None else f"{shlex.quote(ncu)} --clock-control reset || true\n"
    return f"touch {tooling.COLLECTED}{_END_BELOW_NCU}{reset}"


def at_once(server: dict[str, Any], *, ncu: str, locks_clocks: bool) -> Iterator[Change]:
    """Give the server a hook for its deletion; none of its own is left by then."""
    command = ["sh", "-c", script(ncu if locks_clocks else None)]
    server["lifecycle"] = {"preStop": {"exec": {"command": command}}}
    freed = " and frees the GPU's clocks" if locks_clocks else ""
    yield Change(
        path=f"spec.containers[{server['name']}].lifecycle.preStop",
        action=Action.ADDED,
        what=f"a deletion ends the server{freed}",
        why="a production pod that needs its GPU must not wait for results, nor find it slowed",
    )
