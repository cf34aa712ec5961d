"""Pod in, evidence bundle out. Never reads a report's numbers, never draws a page."""
