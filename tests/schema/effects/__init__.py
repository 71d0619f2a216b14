"""Tests of the effects of phone commands."""
