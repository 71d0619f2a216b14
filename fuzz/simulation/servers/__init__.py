"""Simulated model, speech and MCP servers."""
