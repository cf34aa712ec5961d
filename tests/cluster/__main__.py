"""``python -m tests.cluster``: a cluster to use by hand, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.cluster import tools
from tests.cluster.fixture import Cluster


def main() -> int:
    """Run until a signal; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--gpus", type=int, default=8, help="GPUs that the node has")
    parser.add_argument("--port", type=int, default=0, help="port; 0 takes a free one")
    parser.add_argument("--no-node", action="store_true", help="API only: pods stay pending")
    options = parser.parse_args()
    faults = [] if options.no_node else tools.missing()
    if faults:
        print("cannot run containers here; missing:", *faults, sep="\n  ", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Cluster(with_node=not options.no_node, gpus=options.gpus, port=options.port) as cluster:
        cluster.add_user("dev")
        print(f"export KUBECONFIG={cluster.folder / 'kubeconfig'}")
        print(f"export PATH={tools.kubectl_path().parent}:$PATH")
        print("# users, each a context: admin (all rights), dev (none until bound)")
        print("# Ctrl-C takes everything down", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("taking the cluster down", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
