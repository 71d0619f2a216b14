"""Tests of the projections of a turn."""
