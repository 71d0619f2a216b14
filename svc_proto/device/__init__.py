"""The phone side of the protocol: pair, stay connected, answer commands."""
