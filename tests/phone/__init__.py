"""Tests of the phone."""
