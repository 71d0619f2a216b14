"""Mutants: small wrong changes to the core, one at a time, each of which a test must detect."""
