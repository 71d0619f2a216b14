"""Benchmarks of this project beside comparable servers and libraries."""
