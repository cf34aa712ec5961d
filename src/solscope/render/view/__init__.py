"""Formats each number once; every page says what stands here, in its own way."""
