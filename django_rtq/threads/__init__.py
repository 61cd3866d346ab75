"""Our background threads, and their database connections."""
