"""Benchmarks of the core, loops, terminals, files, starts and idle phones, side by side in one run."""
