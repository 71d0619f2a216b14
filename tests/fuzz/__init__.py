"""Tests of the package `fuzz`."""
