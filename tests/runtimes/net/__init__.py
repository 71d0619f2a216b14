"""Tests of the package `runtimes.net`."""
