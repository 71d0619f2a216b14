"""Tests of the commands, run as whole programs."""
