"""The commands `svc`, `svc-pair` and `svc-relay`: options, one service on a loop, output."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
