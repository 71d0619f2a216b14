"""Paired sessions: revocation and expiry."""
