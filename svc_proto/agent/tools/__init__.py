"""Tools of the agent (demo, MCP, memory, phone, question to the owner), and the parts that they share."""
