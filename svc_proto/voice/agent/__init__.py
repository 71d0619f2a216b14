"""Realtime agent: voice sessions whose tasks are performed as chat runs on the API server (wire terminal-voice 6)."""
