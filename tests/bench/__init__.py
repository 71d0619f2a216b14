"""Tests of the benchmarks: they run and give plausible figures."""
