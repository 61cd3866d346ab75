"""The queue in Redis: a method for each change of a job."""
