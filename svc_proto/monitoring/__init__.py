"""`/metrics`, `/healthz`, `/readyz`."""
