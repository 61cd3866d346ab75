"""The worker process: claims jobs, runs them and reports their outcomes."""
