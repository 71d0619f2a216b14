"""Tests of the agent gateway."""
