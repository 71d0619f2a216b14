"""The sans-IO core: facts in, commands out (ARCHITECTURE.md)."""
