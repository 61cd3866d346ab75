"""Code that was written for Celery, and cannot be edited."""
