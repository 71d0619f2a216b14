"""Generated snapshots: each is written by a command and compared by one test."""
