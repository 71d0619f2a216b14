"""Coordination between the nodes of a relay."""
