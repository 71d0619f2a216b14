"""Coordination between the nodes of an API service."""
