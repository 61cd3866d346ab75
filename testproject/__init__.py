"""A small shop that uses django_rtq: for the demo, the tests and the benchmarks."""
