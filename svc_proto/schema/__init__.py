"""Formats on the wire and in files, each defined once, reading and writing side by side. Pure."""
