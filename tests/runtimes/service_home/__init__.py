"""Tests of service home."""
