"""Tests of the package `runtimes.host`."""
