"""The worker: a supervisor, its children, and the life of a job in them."""
