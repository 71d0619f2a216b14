"""Tools of the agent, and the parts that they share."""
