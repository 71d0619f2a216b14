"""Conformance: an echo server on our wire layer, and the suites of others that run against it: docs/conformance.md."""
