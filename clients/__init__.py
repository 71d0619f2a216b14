"""Programs for the other end: the reference phone, the demonstration."""
