"""Monitoring: `/metrics`, `/healthz` and `/readyz`."""
