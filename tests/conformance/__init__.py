"""Conformance suites, with the servers, programs and data that they use (docs/reference/conformance.md)."""
