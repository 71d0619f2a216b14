"""Benchmarks: what the core, the loops, the start and an idle phone cost, side by side with others in one run."""
