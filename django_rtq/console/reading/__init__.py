"""Reads queues, jobs and workers, and acts on them. Used by admin, commands and handles, never by the worker."""
