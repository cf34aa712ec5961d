"""HTTP in, Kubernetes answers out. Never runs a container; knows nothing of solscope."""
