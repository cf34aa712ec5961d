"""Runs the one command that a user hands to ``bundle record``, and keeps what it says."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

COULD_NOT_START = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that has ended: both outputs whole, and its exit code (128 + n for signal n)."""

    stdout: bytes
    stderr: bytes
    exit_code: int


def run(argv: Sequence[str]) -> Finished:
    """Run a command to its end. One that cannot start ends with 127 and says why on stderr."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            code = subprocess.run(argv, stdout=out, stderr=err, check=False).returncode
        except OSError as error:
            err.write(f"{argv[0]}: {error.strerror}\n".encode())
            code = COULD_NOT_START
        for stream in (out, err):
            stream.seek(0)
        code = 128 - code if code < 0 else code
        return Finished(stdout=out.read(), stderr=err.read(), exit_code=code)
