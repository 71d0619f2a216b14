"""Tests of the package `runtimes.store`."""
