"""`python -m bench`: every measurement, each in a process of its own; exit 1 where one missed."""

from __future__ import annotations

import subprocess
import sys

MEASUREMENTS = ("reading", "passes", "ncu_csv_pages", "traces", "lake", "diagnosis")


def main() -> int:
    """Run them all, whatever the earlier ones said."""
    missed = []
    for name in MEASUREMENTS:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            missed.append(name)
    print(f"\nmissed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
