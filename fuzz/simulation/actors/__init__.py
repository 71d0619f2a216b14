"""Actors of the simulation, and the state that several of them share."""
