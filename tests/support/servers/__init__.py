"""Scripted servers, and a scripted MCP program, which take the part of real ones in tests."""
