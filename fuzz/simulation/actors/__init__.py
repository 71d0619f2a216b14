"""Actors of the simulation: each module has the steps of one area."""
