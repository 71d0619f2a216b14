"""Benchmarks: what the core, the loops, terminals, files, starts and idle phones cost, side by side in one run."""
