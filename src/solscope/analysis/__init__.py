"""Report in, verdicts out. Arithmetic only: never reads, never writes, never draws."""
