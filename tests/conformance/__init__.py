"""Echo server on our wire layer, and the test suites of other projects (docs/reference/conformance.md)."""
