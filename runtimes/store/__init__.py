"""SQL store of the cores."""
