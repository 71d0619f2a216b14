"""Versions: that of the software, which servers report and clients store, and that of the relay's protocol."""

__all__ = ["PROTOCOL_VERSION", "VERSION"]

VERSION = "1.0.0"
PROTOCOL_VERSION = 1  # of the relay's envelopes, wire core 8.2
