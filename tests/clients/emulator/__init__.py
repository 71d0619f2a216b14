"""Tests of the simulated handset."""
