"""Small pure values and containers that every other part of the core stands on."""
