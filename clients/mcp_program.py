"""Set-up of the MCP server on standard input and output: builds its program for a relay's address and token."""

import os
from functools import partial

from clients.commands.host_settings import service_home
from runtimes.files.installed_version import installed_version
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from servers.launch import CannotStartError, print_exit_reason
from svc_proto.cli.mcp_stdio_server import McpStdioServer
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.mcp.phone_features import phone_features, poll_for_changes
from svc_proto.mcp.server_features import ServerFeatures
from svc_proto.service_clients.phone_control import RelayPhoneControl
from svc_proto.wire.urls import has_scheme

__all__ = ["mcp_program"]

NAME = "MCP on this host"  # name of its session for the operator, for example to revoke it
TOKEN_FILE = "mcp-relay.json"  # in the service home


def mcp_program(url: str, token: str) -> Program:
    """Build the program of an MCP server on standard input and output, for the phones of the relay at `url`.

    With an empty token and a relay on this host, it uses a stored token or pairs. Raises `CannotStartError`, exit code
    2, for an unusable `url`.
    """
    if not has_scheme(url, "http", "https"):
        raise CannotStartError("the relay's address must be an http:// or https:// URL", code=2)
    core = Engine(McpStdioServer(partial(_offer, url, token)), entropy=os.urandom, log_level=Level.WARNING)
    services = Services(state=service_home(), logger=setup_logging(int(Level.WARNING), name="svc.mcp"))
    return Program(core=core, stdio=True, services=services, on_exit=print_exit_reason)


def _offer(url: str, token: str, engine: Engine) -> ServerFeatures:
    link = RelayPhoneControl(engine, url, token, who=NAME, file=TOKEN_FILE)
    return phone_features(link, poll_for_changes(engine, link), version=installed_version())
