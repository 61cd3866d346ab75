"""Counters of queues and tasks over time, and what becomes of them."""
