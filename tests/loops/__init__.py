"""Tests of whole servers, on real loops and in the simulator."""
