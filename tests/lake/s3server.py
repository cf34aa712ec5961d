"""An S3 server of its own process on loopback, which checks signatures."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# As many requests as the set-up below makes; every later one must be signed by the user's key.
UNCHECKED_REQUESTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """``store`` are the options of one who may use it."""

    bucket: str
    store: dict[str, str]

    def options(self, **changed: str) -> tuple[str, ...]:
        """The values of ``--store``."""
        return tuple(f"{name}={value}" for name, value in {**self.store, **changed}.items())


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server with one user and one empty bucket, for as long as the block runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(UNCHECKED_REQUESTS)}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            _wait(port)
            yield _set_up(f"http://127.0.0.1:{port}")
        finally:
            server.kill()
            server.wait()


def _wait(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _set_up(endpoint: str) -> Server:
    import boto3

    access = {"aws_access_key_id": "set-up", "aws_secret_access_key": "set-up"}
    where = {"endpoint_url": endpoint, "region_name": "us-east-1"}
    people = boto3.client("iam", **where, **access)
    people.create_user(UserName="publisher")
    key = people.create_access_key(UserName="publisher")["AccessKey"]
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    people.put_user_policy(UserName="publisher", PolicyName="all", PolicyDocument=policy)
    boto3.client("s3", **where, **access).create_bucket(Bucket="lake")
    return Server(
        bucket="lake",
        store={
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        },
    )
