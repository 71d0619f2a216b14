"""The realtime agent: a provider hears and speaks, and every real task becomes a chat run (wire terminal-voice 6)."""
