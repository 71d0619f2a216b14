"""Tests of the relay's WebSocket."""
