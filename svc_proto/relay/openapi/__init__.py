"""Descriptions of the relay's HTTP routes and WebSocket messages for its OpenAPI document."""
