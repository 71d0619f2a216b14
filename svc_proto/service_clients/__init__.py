"""Clients for the API server, the relay and MCP servers: addresses, credentials, requests, authenticated sockets."""
