"""MCP servers: the protocol, its sessions and transport over HTTP, and the phone as tools for MCP clients."""
