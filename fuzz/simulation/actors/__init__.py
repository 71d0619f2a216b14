"""Actors of the simulation, and the state and models that they share."""
