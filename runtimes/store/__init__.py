"""Stores of the cores: in memory, in an SQLite file, or in another SQL database."""
