"""Signatures of messages between nodes, and the secret for them."""

import hmac

import pytest

from svc_proto.cluster.message_signatures import RETRY_INTERVAL, SIGNATURE_LENGTH, MessageSigner, load_message_signer
from svc_proto.commands import Query
from svc_proto.engine.core import Engine
from svc_proto.facts import Done, Failed, Failure, FailureKind
from svc_proto.store_requests import LoadClusterSecret
from tests.cluster.harness import RedisHarness

SIGNER = MessageSigner("secret")
SIGNED = SIGNER.sign("c", b"text")


def test_signature_is_half_of_an_hmac() -> None:
    assert hmac.new(b"secret", b"c\0text", "sha256").hexdigest()[:32].encode() + b"text" == SIGNED
    assert SIGNER.verify("c", SIGNED) == b"text"
    assert SIGNER.verify("c", SIGNER.sign("c", b"")) == b""


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        ("d", SIGNED),
        ("c", SIGNED + b"!"),
        ("c", SIGNED[:-1]),
        ("c", b"0" * SIGNATURE_LENGTH + b"text"),
        ("c", MessageSigner("other").sign("c", b"text")),
        ("c", b"text"),
        ("c", b""),
    ],
)
def test_other_messages_are_invalid(channel: str, message: bytes) -> None:
    assert SIGNER.verify(channel, message) is None


def test_secret_is_read_until_the_store_answers() -> None:
    book: RedisHarness[Engine] = RedisHarness(lambda engine: engine)
    loaded = book.spawn(load_message_signer(book.engine))
    (order,) = book.ordered(Query)
    book.feed(Failed(order.op, Failure(FailureKind.UNREACHABLE)))
    assert not book.ordered(Query)
    book.after(RETRY_INTERVAL)
    (order,) = book.ordered(Query)
    assert order.request == LoadClusterSecret()
    book.feed(Done(order.op, "secret"))
    assert [signer.verify("c", SIGNED) for signer in loaded] == [b"text"]
