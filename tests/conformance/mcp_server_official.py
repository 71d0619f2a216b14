"""MCP server of the official package `mcp`: `python mcp_server_official.py FOLDER [PORT]`, over pipes or HTTP.

FOLDER has the package. No product code is imported.
"""

import site
import sys

site.addsitedir(sys.argv[1])

from mcp.server import MCPServer

app = MCPServer("official")


@app.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@app.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no bread")


if len(sys.argv) > 2:
    app.run("streamable-http", port=int(sys.argv[2]))
else:
    app.run("stdio")
