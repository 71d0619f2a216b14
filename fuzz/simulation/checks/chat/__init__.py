"""Checks of chat sessions, turns and approvals."""
