"""Tests of the package `runtimes.processes`."""
