"""Tests of the relay's OpenAPI document."""
