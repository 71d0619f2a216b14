"""Fuzzing of a whole core by a malicious runtime: any fact that the contract permits, at any time."""
