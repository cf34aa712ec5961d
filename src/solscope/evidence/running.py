"""Runs the one command that a user hands to ``bundle record``, and keeps what it says."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

COULD_NOT_START = 127
_LAST_WORDS_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that has ended: both outputs whole, and its exit code (128 + n for signal n).

    ``is_interrupted``: Ctrl-C came meanwhile, and reached the command as well.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int
    is_interrupted: bool = False


def run(argv: Sequence[str]) -> Finished:
    """Run a command to its end. One that cannot start ends with 127 and says why on stderr."""
    is_interrupted = False
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            with subprocess.Popen(argv, stdout=out, stderr=err) as process:
                try:
                    code = process.wait()
                except KeyboardInterrupt:
                    is_interrupted = True
                    code = _end(process)
        except OSError as error:
            err.write(f"{argv[0]}: {error.strerror}\n".encode())
            code = COULD_NOT_START
        for stream in (out, err):
            stream.seek(0)
        code = 128 - code if code < 0 else code
        return Finished(
            stdout=out.read(), stderr=err.read(), exit_code=code, is_interrupted=is_interrupted
        )


def _end(process: subprocess.Popen[bytes]) -> int:
    """Wait for a command that Ctrl-C has reached, too; a second one, or time, ends it."""
    try:
        return process.wait(_LAST_WORDS_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()
