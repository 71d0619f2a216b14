"""The agent gateway that desktops chat through when no other is installed: `python -m clients.gateway`."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
