"""Tests of the server programs."""
