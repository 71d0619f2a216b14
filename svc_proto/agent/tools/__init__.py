"""Tools of the agent, one module for each kind."""
