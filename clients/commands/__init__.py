"""The commands `svc`, `svc-pair` and `svc-relay`: options, one errand on a loop, output."""

from runtimes.extra import need_programs

need_programs()
