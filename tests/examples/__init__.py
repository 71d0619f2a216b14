"""Tests of the programs of examples/."""
