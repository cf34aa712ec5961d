"""The nouns that every wing speaks. Never reads, never writes, never judges."""
