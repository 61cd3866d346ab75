"""Clients of queues: their jobs, limits and pauses."""
