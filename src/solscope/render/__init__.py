"""Analysis in, pages out. Never measures, never judges, never touches the network.

``view`` words every number once; the other rooms only arrange what it says.
"""
