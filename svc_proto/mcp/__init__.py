"""The Model Context Protocol: the phone as tools for any agent."""
