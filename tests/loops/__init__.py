"""Conformance suite for the whole relay, run unchanged on every loop and in the simulator."""
