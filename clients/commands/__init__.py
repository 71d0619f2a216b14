"""The commands `svc`, `svc-pair` and `svc-relay`: options, one errand on a loop, output."""
