"""Tests of the routes, one file a theme."""
