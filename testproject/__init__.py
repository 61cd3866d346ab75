"""A small shop that uses django_rtq, for the demos, the tests and the benchmarks."""
