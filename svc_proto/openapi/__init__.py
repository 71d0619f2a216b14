"""OpenAPI documents of the servers, built from their route tables."""
