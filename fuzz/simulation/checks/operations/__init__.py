"""What an operator relies on: restarts and persistence."""
