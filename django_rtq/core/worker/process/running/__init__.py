"""Runs claimed jobs: in the main thread, in threads, or on an event loop."""
