"""Fuzzing of a whole core: any fact that the contract permits, at any time."""
