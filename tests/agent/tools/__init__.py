"""Tests of the agent's tools."""
