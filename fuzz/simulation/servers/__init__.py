"""Simulated model server."""
