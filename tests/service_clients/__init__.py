"""Tests of the service clients."""
