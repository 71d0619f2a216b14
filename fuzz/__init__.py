"""Fuzzing the core: mutated bytes in, oracles that hold for every input."""
