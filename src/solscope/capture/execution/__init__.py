"""A capture, run: sister up, warm, window, reports home, sister gone. A receipt for each step.

In: settings, a sister, a cluster, an open bundle. Out: files in the bundle. Every step's answer
is recorded before the next begins, so that a run goes on, or cleans up, from its bundle alone.
"""
