"""`python -m tests.conformance.echo_server --port 9001`: the echo on a runtime, with TLS if it gets a certificate.

With `--shop` the MCP server of `mcp_scenario_server` runs in its place.
"""

import os
import sys
from pathlib import Path

import click

from runtimes.cli.runtime_option import runtime_option
from runtimes.host.host import Program
from runtimes.net.listener import BindError, bind
from runtimes.run import run
from runtimes.tls.contexts import TlsFileError, server_context
from svc_proto.engine.core import Engine
from tests.conformance.echo_service import EchoService
from tests.conformance.mcp_scenario_server import ScenarioServer

PEM = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=9001, show_default=True, help="Port; 0: a free one.")
@runtime_option
@click.option("--cert", type=PEM, help="Certificate chain, PEM; with it the server speaks TLS alone.")
@click.option("--key", type=PEM, help="Its key, PEM; the same file if not given.")
@click.option("--shop", is_flag=True, help="Serve MCP at /mcp instead.")
def main(host: str, port: int, runtime: str, cert: Path | None, key: Path | None, shop: bool) -> None:
    """Run the echo, or with --shop the MCP server, until it is interrupted. Prints its address when it is ready."""
    try:
        listener = bind(host, port, tls=None if cert is None else server_context(cert, key))
    except (BindError, TlsFileError) as error:
        raise click.ClickException(str(error)) from error
    scheme = "http" if cert is None else "https"

    def say() -> None:
        click.echo(f"echo: {scheme}://{listener.address.host}:{listener.address.port}")

    core = Engine(ScenarioServer() if shop else EchoService(), entropy=os.urandom)
    sys.exit(run(Program(core=core, listeners=[listener], on_ready=say), runtime))


if __name__ == "__main__":
    main()
