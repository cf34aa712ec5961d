"""Pod in, bundle out: decides and drives a capture. Never reads a report, never computes a bound."""
