"""Simulation of several relay nodes with Redis and, for some seeds, shared media storage."""
