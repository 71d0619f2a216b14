"""OpenAPI document of the API server: its operations, and the JSON types of its routes."""
