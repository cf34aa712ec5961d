"""What lies on disk: bundles and their receipts. In: steps and files. Out: proof.

Never asks a cluster, never judges a number. A file is whole or it is not there: everything is
written under another name, flushed to the disk, and renamed.
"""
