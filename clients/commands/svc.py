"""The program `svc`: runs and inspects the servers, pairs phones, and changes settings of the relay."""

import click

from clients.commands.cli import SETTINGS, LazyGroup
from runtimes.cli.click_help import version_option

__all__ = ["main", "relay"]

EXAMPLES = """
\b
Examples:
  svc up  # run the servers and show a QR for a phone
  svc status  # running servers, the model, online phones
  svc top  # live rates, memory and lag
  svc logs -f
  svc pair  # show a QR for another phone
  svc pair --ttl 90d --grants bridge=1d
  svc devices  # names, prefixes, grants
  svc revoke "Pixel 8"  # after a phone was lost
  svc model --url http://127.0.0.1:11434/v1  # choose the model, here of Ollama
  svc doctor --public-url https://home.example
  svc phone  # a simulated phone; its screen is in the dashboard
  svc mcp install claude  # or cursor, vscode, print
  svc key rotate  # a new API key, after a phone was lost
  svc service install  # start the servers with this host
  svc backup && svc status  # possible while the servers run
  svc relay insecure-api-key status

\b
Shell completion (bash; zsh and fish likewise):
  eval "$(_SVC_COMPLETE=bash_source svc)"
"""


@click.group(
    cls=LazyGroup,
    modules={
        "up": ("servers.__main__:main", "Run the servers and show a QR for a phone."),
        "status": ("clients.commands.server_status:status", "Show the running servers and the phones."),
        "top": ("clients.commands.top:main", "Show live rates, memory and lag."),
        "logs": ("clients.commands.logs:main", "Show the logs; -f follows."),
        "down": ("clients.commands.stop_servers:down", "Stop the servers."),
        "drain": ("clients.commands.stop_servers:drain", "Move the phones to other nodes, then stop."),
        "doctor": ("clients.commands.doctor_host:main", "Check the servers from here and from outside."),
        "model": ("clients.commands.model:main", "List, test and choose the model."),
        "open": ("clients.commands.open_dashboard:main", "Open the dashboard, or print its address."),
        "pair": ("clients.commands.pair:main", "Make a pairing code and show it as a QR."),
        "devices": ("clients.commands.host_devices:devices", "List the paired devices."),
        "revoke": ("clients.commands.host_devices:revoke", "End the session of a device."),
        "rename": ("clients.commands.host_devices:rename", "Give a device another name."),
        "extend": ("clients.commands.host_devices:extend", "Give the session of a device another lifetime."),
        "phone": ("clients.commands.phone:main", "Run a simulated phone."),
        "service": ("clients.commands.service_command:main", "Install the servers as a service."),
        "backup": ("clients.commands.backup:backup", "Back up the service home to one file."),
        "restore": ("clients.commands.backup:restore", "Restore a backup."),
        "db": ("clients.commands.db:main", "Copy or upgrade the database."),
        "mcp": ("clients.commands.mcp:main", "Connect MCP clients (Claude Code, Cursor, ...) to the phone."),
        "message": ("clients.commands.message:main", "Send a message to the owner's phone."),
        "audit": ("clients.commands.audit:main", "Show who changed access, approvals and settings."),
        "undo": ("clients.commands.undo:main", "List and undo what a device changed at the agent."),
        "key": ("clients.commands.key:main", "Replace the key of the API server."),
        "relay": ("clients.commands.svc:relay", "Change settings of the running relay."),
    },
    epilog=EXAMPLES,
    context_settings=SETTINGS,
)
@version_option()
def main() -> None:
    """Operate a relay on its own host."""


@click.group(
    cls=LazyGroup,
    modules={
        "insecure-api-key": (
            "clients.commands.insecure_api_key:main",
            "Accept API keys over plain HTTP from other hosts?",
        ),
        "public-route": (
            "clients.commands.public_route:main",
            "Show or end what a public route requires of programs of this host.",
        ),
    },
    epilog="\b\nExample:\n  svc relay insecure-api-key status",
    context_settings=SETTINGS,
)
def relay() -> None:
    """Change settings of the running relay."""


if __name__ == "__main__":
    main(prog_name="svc")
