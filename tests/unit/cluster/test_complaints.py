"""kubectl's sentences, as it wrote them, to errors that say the next step."""

from __future__ import annotations

import pytest

from solscope.cluster import complaints
from solscope.cluster.port import Conflict, Forbidden, NotFound, Refused, UnknownKind, Unreachable
from solscope.errors import ClusterError


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (
            'Error from server (Forbidden): nodes "a" is forbidden: User "u" cannot get resource '
            '"nodes" in API group "" at the cluster scope',
            "get nodes (whole cluster)",
        ),
        (
            'Error from server (Forbidden): deployments.apps is forbidden: User "u" cannot list '
            'resource "deployments" in API group "apps" in the namespace "x"',
            "list deployments.apps (namespace x)",
        ),
        (
            "error: unable to upgrade connection: pods/exec is forbidden: User cannot create "
            'resource "pods/exec" in API group "" in the namespace "x"',
            "create pods/exec (namespace x)",
        ),
    ],
)
def test_a_missing_right_is_named_as_one_asks_for_it(text: str, right: str) -> None:
    error = complaints.error_of(text, "x")
    assert isinstance(error, Forbidden)
    assert error.right == right
    assert "User" not in str(error)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Error from server (NotFound): pods "x" not found', NotFound),
        ("error: the server doesn't have a resource type \"lws\"", UnknownKind),
        ("Error from server (NotFound): the server could not find the requested resource",
         UnknownKind),
        ('Error from server (AlreadyExists): jobs.batch "x" already exists', Conflict),
        ('Error from server (Conflict): Operation cannot be fulfilled on pods "x": the object '
         "has been modified", Conflict),
        ('Error from server (Forbidden): pods "x" is forbidden: exceeded quota: gpus', Refused),
        ('Error from server (Forbidden): error when creating "STDIN": pods "x" is forbidden: '
         'violates PodSecurity "baseline:latest"', Refused),
        ("Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout", Unreachable),
        ("The connection to the server localhost:8080 was refused - did you specify the right "
         "host or port?", Unreachable),
        ("error: You must be logged in to the server (Unauthorized)", Forbidden),
        ("", ClusterError),
        ("something else", ClusterError),
    ],
)  # fmt: skip
def test_each_complaint_has_its_kind(text: str, kind: type[ClusterError]) -> None:
    assert type(complaints.error_of(text, "x")) is kind


def test_the_servers_own_sentence_is_kept() -> None:
    text = 'Error from server (Forbidden): pods "x" is forbidden: exceeded quota: gpus, used: 4'
    assert "exceeded quota: gpus, used: 4" in str(complaints.error_of(text, "x"))


def test_log_lines_of_kubectl_are_not_taken_for_the_cause() -> None:
    text = "E1130 08:00:00.000000 1 memcache.go:265] couldn't get\nerror: no such thing"
    assert complaints.error_of(text, "x").what == "error: no such thing"


@pytest.mark.parametrize(
    "text",
    [
        'OCI runtime exec failed: exec failed: unable to start container process: exec: "sh": '
        "executable file not found in $PATH: unknown",
        "Error from server (BadRequest): pod p1 does not have a host assigned",
    ],
)
def test_a_command_that_never_ran_is_told_from_one_that_failed(text: str) -> None:
    assert complaints.is_not_started(text)
    assert not complaints.is_not_started("cat: /x: No such file or directory")


def test_a_pod_that_has_ended_takes_no_command() -> None:
    said = "error: cannot exec into a container in a completed pod; current phase is Failed"
    assert complaints.is_not_started(said)
