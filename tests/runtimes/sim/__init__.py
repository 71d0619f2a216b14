"""Tests of the package `runtimes.sim`."""
