"""Tests of terminal sessions."""
