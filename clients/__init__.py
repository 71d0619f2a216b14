"""Client programs: commands, reference phone, gateway, MCP server on standard input and output, demonstration."""
