"""MCP client as a command: `python -m tests.conformance.mcp_client RUNTIME URL` or `… RUNTIME PROGRAM ARGUMENT…`.

It lists the tools, calls each once with a value for each property of its schema, prints the results as JSON, and exits.
"""

import json
import os
import sys
from collections.abc import Sequence

from runtimes.host.host import Program
from runtimes.run import run
from svc_proto.cli.one_shot_service import OneShotService
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.mcp_client import McpClient, McpError, McpTransport
from svc_proto.service_clients.mcp_http_transport import HttpParameters, McpHttpTransport
from svc_proto.service_clients.mcp_stdio_transport import McpStdioTransport
from svc_proto.service_clients.mcp_stdio_transport import StdioParameters as Child

WITHIN = 20.0  # s
OF_A_TYPE = {"number": 3, "integer": 3, "boolean": True, "array": [], "object": {}}


def main(runtime: str, target: Sequence[str]) -> int:
    """Run the client on a runtime, print the results of the tool calls or the problem as JSON; return the exit code."""

    def plan(engine: Engine) -> Flow[dict[str, object]]:
        def carry(client: McpClient) -> McpTransport:
            if target[0].startswith("http"):
                return McpHttpTransport(engine, HttpParameters(url=target[0]), client)
            return McpStdioTransport(engine, Child(argv=tuple(target)), client)

        client = McpClient(engine, carry)
        told: dict[str, object] = {}
        try:
            yield from client.open(WITHIN)
            for row in (yield from client.list_all("tools/list", "tools", within=WITHIN)):
                properties = row.get_object("inputSchema").get_object("properties")
                given = {name: OF_A_TYPE.get(properties.get_object(name).text("type"), "x") for name in properties}
                called = client.request("tools/call", {"name": row["name"], "arguments": given}, within=WITHIN)
                told[row.text("name")] = JsonObject((yield from called))
        except McpError as failed:
            told["problem"] = str(failed)
        client.close()
        yield from sleep(engine, 1.0)  # so that the session can be closed
        return told

    service = OneShotService(plan)
    code = run(Program(core=Engine(service, entropy=os.urandom)), runtime)
    sys.stdout.write(json.dumps(service.result) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
