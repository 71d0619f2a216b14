"""Tests of the benchmarks: they run and give figures; the values are not tested."""
