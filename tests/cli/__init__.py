"""Tests of the cores of the command-line programs."""
