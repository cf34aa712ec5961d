"""Pods in, containers out: a kubelet in miniature on Debian's runc."""
