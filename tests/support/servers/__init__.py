"""Scripted servers for tests of our clients."""
