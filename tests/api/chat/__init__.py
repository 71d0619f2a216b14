"""Tests of chat sessions."""
