"""Commands of the programs `svc`, `svc-pair` and `svc-relay`, and what they share."""

from runtimes.cli.serve_extra import require_serve_extra

require_serve_extra()
