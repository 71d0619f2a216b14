"""OpenAPI of the relay."""
