"""Store in, store out: what the controller manager and the scheduler do, level-triggered."""
