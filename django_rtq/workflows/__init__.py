"""Workflows: jobs that wait for others, take their results, and are looked at as one thing."""
