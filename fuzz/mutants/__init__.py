"""Mutants: small wrong changes to the core, one at a time, that some test has to notice."""
