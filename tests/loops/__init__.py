"""Tests of whole servers, for real loops and the simulator; `tests.support.scenario_plan` selects where each runs."""
