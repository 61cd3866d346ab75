"""Connections to Redis. The only package that imports redis."""
