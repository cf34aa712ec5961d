"""What lies on disk: folders that outlive a run, their files and their names. Never judges."""
