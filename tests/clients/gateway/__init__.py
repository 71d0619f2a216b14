"""The agent gateway."""
