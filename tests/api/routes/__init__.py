"""Tests of the API's routes."""
