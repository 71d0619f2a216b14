"""Tests of the relay's routes, one file per subject."""
