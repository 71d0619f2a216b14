"""Tests of the package `runtimes.loops`."""
