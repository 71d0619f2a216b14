"""Mutants: small wrong changes to the core, one at a time, which a test, mypy or a simulation has to detect."""
