"""Checks of a simulated deployment after its script, by product area."""
