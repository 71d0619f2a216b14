"""Agents behind the API: a model that streams and calls tools, or the built-in agent."""
