"""Default gateway, which connects a desktop's JSON-RPC client with the API server: `python -m clients.gateway`."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
