"""The programs: a core plus a socket loop, started from a command line."""

from runtimes.cli.serve_extra import need_programs

need_programs()
