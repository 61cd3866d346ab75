"""A shop with several tenants. Each is a client of the queue."""
