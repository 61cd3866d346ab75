"""The same work by django_rtq and by other task queues: python -m benchmarks.rivals, or make bench-rivals."""
