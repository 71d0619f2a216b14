"""Tests of the API's OpenAPI document."""
