"""Tests of tls."""
