"""Checks of paired sessions: revocation and expiry."""
