"""kubectl on a cluster that is half ill, or with a configuration that is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from solscope.cluster.kubectl import Kubectl
from solscope.errors import ClusterError

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


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            "#!/bin/sh\necho 'error: error loading config file \"x\": yaml: line 1' >&2\nexit 1\n",
            "kubectl cannot read its configuration: error: error loading config file",
        ),
        ("#!/bin/sh\necho 'error: current-context must exist in order to minify' >&2\nexit 1\n",
         "kubectl has no current context"),
        ("no program", "does not start: Exec format error"),
    ],
)  # fmt: skip
def test_a_kubectl_that_cannot_be_used_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = tmp_path / "kubectl"
    path.write_text(program)
    path.chmod(0o755)
    with pytest.raises(ClusterError, match=re.escape(said)):
        Kubectl(binary=str(path))
