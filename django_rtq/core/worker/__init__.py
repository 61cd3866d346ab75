"""The worker: a supervisor, and the processes that run jobs."""
