"""Tests of the relay's cluster code."""
