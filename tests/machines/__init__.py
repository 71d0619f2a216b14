"""Tests of the state machines."""
