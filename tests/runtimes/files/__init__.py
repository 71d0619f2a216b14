"""Tests of the package `runtimes.files`."""
