"""How many jobs of queues and clients may run, start in a time, and wait."""
