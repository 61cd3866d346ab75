"""How fast, how late, how large, how fair: measured with real processes and a Redis of its own."""
