"""The relay side of voice."""
