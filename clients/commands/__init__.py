"""The commands `svc`, `svc-pair` and `svc-relay`: options, one errand on a loop, output."""

from runtimes.cli.serve_extra import need_programs

need_programs()
