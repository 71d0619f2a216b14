"""Models of the expected state, with which the simulated system is compared."""
