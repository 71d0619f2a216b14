"""Realtime agent: a provider listens and answers, and every real task becomes a chat run (wire terminal-voice 6)."""
