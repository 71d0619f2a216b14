"""Tests of `fuzz`."""
