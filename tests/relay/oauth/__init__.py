"""Tests of oauth."""
