"""Shared parts of the programs' command lines: options, help, text encodings, and output for terminals."""
