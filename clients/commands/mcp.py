"""`svc mcp`: serve the phone to MCP clients on standard input and output, and register it with them."""

import json
import os
import shlex
import sys
from pathlib import Path
from shutil import which
from typing import Any

import click

from clients.commands.cli import SETTINGS, LazyGroup, error_reason
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import CliError

__all__ = ["install", "main"]

GROUP = """
\b
Examples:
  svc mcp install claude  # Claude Code: runs `claude mcp add` for you
  svc mcp install cursor  # writes ~/.cursor/mcp.json
  svc mcp install vscode
  svc mcp install print  # prints the lines for any other client
  svc mcp allow 7Q2MZK  # allow a remote agent, by the code of its page
  svc mcp token "Open WebUI"  # for a client without OAuth
  svc mcp token watcher --read-only  # for a client that only reads
  svc mcp  # started by the client: JSON-RPC on standard input and output

The first call pairs "MCP on this host" with the relay of this host (svc up). That session may control the phone and
nothing else; `svc pair --revoke` or the dashboard ends it.

The phone's owner confirms actions at the phone. If a phone never asks, the MCP client asks (elicitation); if the client
cannot ask, such calls are refused. To use a relay elsewhere, set --relay-url and SVC_RELAY_TOKEN.
"""
INSTALL = """
\b
Examples:
  svc mcp install claude
  svc mcp install cursor
  svc mcp install print

Other servers in those files do not change.

Exit codes: 0; 1 when the installation fails; 2 for bad options.
"""
NAME = "phone"
COMMAND_TIMEOUT = 60.0  # s for a client's own command
CLIENTS = ("claude", "cursor", "vscode", "print")


@click.group(
    "mcp",
    cls=LazyGroup,
    modules={
        "install": ("clients.commands.mcp:install", "Register the phone with an MCP client."),
        "allow": ("clients.commands.mcp_allow:main", "Allow or refuse a remote agent."),
        "token": ("clients.commands.mcp_token:main", "Create a token for a client without OAuth."),
    },
    invoke_without_command=True,
    epilog=GROUP,
    context_settings=SETTINGS,
)
@click.option(
    "--relay-url", envvar="SVC_RELAY_URL", help="Address of another relay.  [SVC_RELAY_URL; the one of this host]"
)
@runtime_option
@click.pass_context
def main(ctx: click.Context, *, relay_url: str | None, runtime: str) -> None:
    """Serve the phone to an MCP client on standard input and output."""
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin.isatty():
        raise CliError("this is for an agent's program to start: svc mcp install, or svc mcp --help")
    from clients.commands.host_settings import read_relay_config
    from clients.mcp_program import mcp_program
    from servers.launch import launch
    from svc_proto.cli.operator_requests import local_relay

    url = relay_url or local_relay(read_relay_config()).url
    launch(lambda: [mcp_program(url, os.environ.get("SVC_RELAY_TOKEN", ""))], runtime)


@click.command("install", epilog=INSTALL, context_settings=SETTINGS)
@click.argument("client", type=click.Choice(CLIENTS))
def install(*, client: str) -> None:
    """Register the phone with an MCP client, or print the configuration."""
    words, env = _command()
    entry: dict[str, Any] = {"command": words[0], "args": words[1:], **({"env": env} if env else {})}
    if client == "claude":
        flags = [flag for name, value in env.items() for flag in ("--env", f"{name}={value}")]
        _run_client_command("claude", "mcp", "add", "--scope", "user", NAME, *flags, "--", *words)
    elif client == "vscode":
        _run_client_command("code", "--add-mcp", json.dumps({"name": NAME, "type": "stdio", **entry}))
    elif client == "cursor":
        path = Path("~/.cursor/mcp.json").expanduser()
        _merge(path, entry)
        print(f"{path}: the server {NAME!r} is {shlex.join(words)}")
    else:
        print(json.dumps({"mcpServers": {NAME: entry}}, indent=2))


def _command() -> tuple[list[str], dict[str, str]]:
    """Return the command that starts `svc mcp` from any folder, and its environment: `SVC_HOME` if that is set here."""
    installed = Path(sys.executable).with_name("svc")
    found = str(installed) if installed.exists() else which("svc")
    words = [found, "mcp"] if found else [sys.executable, "-P", "-m", "clients.commands.svc", "mcp"]
    home = os.environ.get("SVC_HOME", "").strip()
    return words, {"SVC_HOME": str(Path(home).expanduser().absolute())} if home else {}


def _run_client_command(*words: str) -> None:
    """Run the MCP client's command and print its output, or a confirmation if it has none.

    If it is not installed, print the command line. Raises `CliError` if the command fails or times out.
    """
    if which(words[0]) is None:
        print(f"{words[0]} is not on this host's path. Where it is:\n  {shlex.join(words)}")
        return
    import subprocess

    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CliError(f"{words[0]} failed: {error}") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise CliError(f"{words[0]} failed: {said or f'exit code {done.returncode}'}")
    print(done.stdout.strip() or f"{words[0]} knows the server {NAME!r} now.")


def _merge(path: Path, entry: dict[str, Any]) -> None:
    """Add or replace the server in an MCP client's configuration file, which is replaced atomically.

    Raises `CliError` if the file cannot be read or written, or has another format.
    """
    from clients.commands.host_settings import service_home
    from runtimes.files.state_folder import StateFolder
    from svc_proto.schema.json_object import JsonObject, NotJsonObjectError

    try:
        text = path.read_text("utf-8") if path.exists() else "{}"
        settings = JsonObject.load(text or "{}", ours=True)
        servers = settings.object_or_none("mcpServers") if "mcpServers" in settings else JsonObject()
        if servers is None:
            raise NotJsonObjectError
        settings["mcpServers"] = {**servers, NAME: entry}
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error_reason(error)}") from None
    except ValueError:
        raise CliError(f"{path} is not what was expected; svc mcp install print shows what belongs into it") from None
    try:
        text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        StateFolder(service_home(), (path.parent,)).write(str(path), text.encode("utf-8"), follow=True)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error_reason(error)}") from None
