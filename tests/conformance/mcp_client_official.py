"""Official MCP client of a phone: `python mcp_client_official.py FOLDER COMMAND…` opens an app and reads the screen.

FOLDER has the package `mcp`, COMMAND starts a server of the phone: `svc mcp`. No product code is imported.
"""

import asyncio
import os
import site
import sys

site.addsitedir(sys.argv[1])

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main() -> None:
    """Open an app, read the screen, and print the results; exit with an error if a tool call fails."""
    command, *args = sys.argv[2:]
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(stdio_client(server)) as phone:
        tools = await phone.list_tools()
        sys.stdout.write(f"{len(tools.tools)} tools\n")
        for name, arguments in (("phone_open_app", {"package": "com.example.mail"}), ("phone_screen", {})):
            result = await phone.call_tool(name, arguments)
            text = " ".join(block.text for block in result.content if block.type == "text")
            sys.stdout.write(f"{name}: {text[:200]}\n")
            if result.is_error:
                sys.exit(f"{name} failed")


asyncio.run(main())
