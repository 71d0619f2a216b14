"""Simulation of several relay nodes with Redis and a bucket."""
