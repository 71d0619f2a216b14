"""Support code of all tests: drivers and harnesses."""
