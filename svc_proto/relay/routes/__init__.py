"""The HTTP routes of the relay, one module for each topic."""
