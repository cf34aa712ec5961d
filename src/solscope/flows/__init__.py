"""The corridor: a file per verb, each a journey through the wings. Never computes or prints."""
