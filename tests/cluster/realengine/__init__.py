"""The real vLLM, built for CPUs, as an image of the test cluster: opt-in, minutes and gigabytes."""
