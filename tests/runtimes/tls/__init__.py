"""Tests of the package `runtimes.tls`."""
