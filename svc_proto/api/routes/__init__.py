"""The routes of the API server."""
