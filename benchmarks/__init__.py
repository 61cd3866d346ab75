"""Benchmarks of throughput, latency, memory and fairness, with real processes and a private Redis."""
