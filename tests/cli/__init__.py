"""Tests of what the command-line clients decide."""
