"""The rooms that are gone through when everybody has left: see `fuzz.simulation.checks.check_context`."""
