"""The API server: chat sessions, turns that stream, runs, and what manages them."""
