"""The HTTP routes of the relay, one file a theme."""
