"""Terminal input and output of the client programs."""
