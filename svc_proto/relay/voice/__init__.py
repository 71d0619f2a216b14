"""Voice in the relay: access, uploads of recordings, and the loaded subsystem."""
