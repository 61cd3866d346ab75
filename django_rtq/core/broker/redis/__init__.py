"""Connections to Redis. No other package imports redis."""
