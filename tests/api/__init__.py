"""Tests of the API server's core."""
