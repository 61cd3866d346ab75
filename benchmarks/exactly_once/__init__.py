"""Kills workers while they run jobs of a task with exactly_once, and counts what is in the database."""
