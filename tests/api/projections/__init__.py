"""Tests of how a turn is told."""
