"""The reference phone."""
