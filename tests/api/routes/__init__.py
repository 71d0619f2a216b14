"""Tests of the routes of the API."""
