"""The programs of examples/ run, each in the least of a world that it needs."""
