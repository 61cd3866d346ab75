"""Schedules of periodic jobs, and the times at which they fire. The package `scheduler` fires them."""
