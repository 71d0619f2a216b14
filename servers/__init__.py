"""The programs: a core plus a socket loop, started from a command line."""
