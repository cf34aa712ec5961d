"""Analysis in, tables out. Never judges a number, never overwrites a row it does not own."""
