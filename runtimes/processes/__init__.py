"""Child processes and their output."""
