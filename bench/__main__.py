"""`python -m bench`: every measurement, one after the other."""

from __future__ import annotations

from bench import reading

if __name__ == "__main__":
    reading.main()
