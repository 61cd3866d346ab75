"""Jobs and the transactions of databases: the outbox, and tasks that run exactly once."""
