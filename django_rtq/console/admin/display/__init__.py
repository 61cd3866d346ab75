"""Prepares data for the templates of the admin."""
