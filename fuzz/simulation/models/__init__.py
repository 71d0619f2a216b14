"""Expected state beside the simulated system."""
