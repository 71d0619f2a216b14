"""Tests of the package `runtimes.service_home`."""
