"""Target and plan in, an isolated copy and the proof of its isolation out.

Pure: reads no file, asks no cluster, makes nothing. :func:`assembly.build` is the whole of it.
"""
