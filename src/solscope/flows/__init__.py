"""The corridor: one file per verb, each a journey through the wings. Never computes, never prints."""
