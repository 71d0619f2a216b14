"""Turns and runs."""
