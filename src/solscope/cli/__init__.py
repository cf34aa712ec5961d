"""Arguments in, text and exit code out. The only place that prints and exits."""
