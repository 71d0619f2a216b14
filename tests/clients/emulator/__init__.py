"""Tests of the emulated phone."""
