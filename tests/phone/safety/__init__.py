"""Tests of the safety gates."""
