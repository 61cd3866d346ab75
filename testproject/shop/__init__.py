"""A shop with several tenants, each a client of the queue."""
