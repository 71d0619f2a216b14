"""Tests of safety."""
