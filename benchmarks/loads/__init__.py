"""Jobs as projects have them: some milliseconds long, with a database, with arguments, in threads, that fail."""
