"""Checks that run after all clients have disconnected: see `fuzz.simulation.checks.check_context`."""
