"""Analysis in, page out. Formats numbers once; never judges."""
