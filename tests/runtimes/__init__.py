"""Tests of the package `runtimes`."""
