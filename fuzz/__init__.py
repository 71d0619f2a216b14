"""Fuzzers, random worlds, simulations and mutants of the project."""
