"""A container's command in, EngineArgs out. Never asks a cluster, never fills in a default."""

from solscope.capture.engine.reading import from_container, from_process, port_of, recognises

__all__ = ["from_container", "from_process", "port_of", "recognises"]
