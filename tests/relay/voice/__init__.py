"""Tests of the relay's voice subsystem."""
