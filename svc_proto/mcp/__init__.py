"""MCP server side: the phone as tools for MCP clients."""
