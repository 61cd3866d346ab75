"""Searches jobs of all queues and states with one line of text."""
