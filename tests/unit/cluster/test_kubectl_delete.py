"""Deleting with a uid precondition on a cluster that is half ill."""

from __future__ import annotations

import json
from pathlib import Path

from solscope.cluster.kubectl import Kubectl

# A broken aggregated API: kubectl lists every other kind, complains, and exits 1.
PROGRAM = """#!/bin/sh
case "$*" in
  *"config view"*) echo '{}';;
  *api-resources*)
    echo 'jobs   batch/v1   true   Job   create,delete,get,list'
    echo 'error: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1:' \\
      'the server is currently unable to handle the request' >&2
    exit 1;;
  *" get "*) echo '{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "s"}}';;
  *"delete --raw"*) { echo "$*"; cat; } >"$(dirname "$0")/deleted";;
esac
"""


def test_a_broken_metrics_api_does_not_keep_an_object_from_being_deleted(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    Kubectl(context="c", namespace="prod", binary=str(program)).delete("jobs", "s", uid="u1")
    command, body = (tmp_path / "deleted").read_text().split("\n", 1)
    assert "delete --raw /apis/batch/v1/namespaces/prod/jobs/s -f -" in command
    assert json.loads(body)["preconditions"] == {"uid": "u1"}
