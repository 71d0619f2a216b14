"""Projections of a turn: session events, run events, completion chunks and responses."""
