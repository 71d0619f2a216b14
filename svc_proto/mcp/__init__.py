"""MCP server: requests, sessions, transport over HTTP, and the phone as tools for MCP clients."""
