"""Tests of websocket."""
