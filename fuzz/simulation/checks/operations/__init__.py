"""Checks of operations: restarts and persistence."""
