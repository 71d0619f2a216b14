"""Tests of device."""
