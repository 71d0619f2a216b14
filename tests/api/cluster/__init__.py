"""Tests of the API's cluster code."""
