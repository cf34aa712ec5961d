"""What runs inside containers of the test cluster: an engine and a profiler that only look real."""
