"""Tests of the package `runtimes.cli`."""
