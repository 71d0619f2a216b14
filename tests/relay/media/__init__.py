"""Tests of the media subsystem."""
