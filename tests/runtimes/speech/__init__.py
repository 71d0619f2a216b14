"""Tests of the package `runtimes.speech`."""
