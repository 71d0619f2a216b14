"""The programs: a core plus a socket loop, started from a command line."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
