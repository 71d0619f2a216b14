"""Tests of the package `clients`."""
