"""Measurements against what people use today. `make bench` runs them all and prints tables."""
