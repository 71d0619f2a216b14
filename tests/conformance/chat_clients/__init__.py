"""Clients of OpenAI's API by other projects, on an API server with a scripted model."""
