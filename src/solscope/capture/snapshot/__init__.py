"""Cluster objects, or files of them, in; WorkloadSnapshot out. Reads only, judges nothing."""

from solscope.capture.snapshot.inside import WORD_END, ask_server, look_inside
from solscope.capture.snapshot.live import from_cluster
from solscope.capture.snapshot.manifest import config_files, from_objects, read_objects

__all__ = [
    "WORD_END",
    "ask_server",
    "config_files",
    "from_cluster",
    "from_objects",
    "look_inside",
    "read_objects",
]
