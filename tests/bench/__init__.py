"""Tests of the benchmarks: that they run and give figures, not what the figures are."""
