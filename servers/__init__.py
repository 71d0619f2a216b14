"""The server programs: a core and a loop, started from a command line."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
