"""Tests of the OpenAPI documents."""
