"""Scripted servers that take the part of real ones in tests of our clients."""
