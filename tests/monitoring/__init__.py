"""Tests of the monitoring routes."""
