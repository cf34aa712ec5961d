"""Bytes in, Report out. Never computes a metric, never asks a cluster."""
