"""Text files that people wrote: YAML in, mappings out; and files that appear whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solscope.errors import ReportError, UsageError


def yaml_mapping(path: Path, *, hint: str) -> Mapping[str, Any]:
    """The mapping that a YAML file holds; an empty file is an empty mapping.

    Raises UsageError where the file cannot be opened, ReportError where it is not a mapping.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(read_bytes(path, hint=hint), Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ReportError(f"not YAML: {said}", where=str(path), hint=hint) from error
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise ReportError("not a mapping of names to values", where=str(path), hint=hint)
    return document


def read_bytes(path: Path, *, hint: str) -> bytes:
    """A file's bytes. Raises UsageError where it cannot be opened."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error


def write_whole(path: Path, content: bytes) -> Path:
    """Write under a temporary name beside it, then rename: never half a file.

    Raises UsageError where the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".solscope-", suffix=".part")
    except OSError as error:
        raise UsageError(f"cannot write here: {error.strerror}", where=str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise UsageError(f"cannot be written: {error.strerror}", where=str(path)) from error
        raise
    return path
