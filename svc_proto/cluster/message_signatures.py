"""Signatures of the messages between nodes: HMAC-SHA-256 (RFC 2104) with a secret from the store that nodes share.

Redis only transports the messages. A client of Redis without the secret cannot create a message, change one, or send
one on to another channel, because the signature includes the channel. `Node` drops a message that arrives twice.
"""

import hmac

from svc_proto.commands import Query
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation, sleep
from svc_proto.facts import Failure
from svc_proto.store_requests import LoadClusterSecret

__all__ = ["SIGNATURE_LENGTH", "RETRY_INTERVAL", "MessageSigner", "load_message_signer"]

SIGNATURE_LENGTH = 32  # bytes of hex: the first 128 bits of the HMAC, RFC 2104 section 5
RETRY_INTERVAL = 1.0  # s after the store did not answer


class MessageSigner:
    """Signer and verifier of messages with one secret."""

    def __init__(self, secret: str) -> None:
        self._key = secret.encode()

    def sign(self, channel: str, text: bytes) -> bytes:
        """Return the message for a channel: the signature, then the text."""
        return self._signature(channel, text) + text

    def verify(self, channel: str, message: bytes) -> bytes | None:
        """Return the text of a message; None without a valid signature for this channel."""
        text = message[SIGNATURE_LENGTH:]
        valid = hmac.compare_digest(message[:SIGNATURE_LENGTH], self._signature(channel, text))
        return text if valid else None

    def _signature(self, channel: str, text: bytes) -> bytes:
        digest = hmac.digest(self._key, channel.encode() + b"\0" + text, "sha256")
        return digest.hex()[:SIGNATURE_LENGTH].encode()


def load_message_signer(engine: Engine) -> Flow[MessageSigner]:
    """Return a signer with the secret from the store; the request is repeated until the store answers it."""
    while True:
        secret = yield from run_operation(engine, Query(engine.new_op(), LoadClusterSecret()))
        if not isinstance(secret, Failure):
            return MessageSigner(secret)
        yield from sleep(engine, RETRY_INTERVAL)
