"""Small values, containers and functions without input or output, which the other parts of the core use."""
