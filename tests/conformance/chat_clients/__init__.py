"""Clients of OpenAI's API by other projects: each runs the same steps on an API server with a scripted model."""
