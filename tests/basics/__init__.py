"""Tests of the small values and containers."""
