"""Tests of about."""
