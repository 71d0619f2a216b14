"""Default gateway between desktops and the agent: `python -m clients.gateway`."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
