"""Tests of the commands, as whole programs."""
