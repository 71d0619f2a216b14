"""Small pure values and containers, used by all other parts of the core."""
