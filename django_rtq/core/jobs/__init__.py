"""What a job is: its record, its arguments and what it knows of itself. No Redis."""
