"""Facts are values: immutable, comparable, and each is in the union that runtimes send."""

from __future__ import annotations

from typing import get_args

import pytest
from attrs.exceptions import FrozenInstanceError

from svc_proto import facts
from svc_proto.facts import Address, ChannelId, Closed, Fact, FailureKind, Received


def test_equal_facts_are_equal() -> None:
    assert Received(ChannelId(2), b"x") == Received(ChannelId(2), b"x")
    assert Received(ChannelId(2), b"x") != Received(ChannelId(4), b"x")


def test_a_fact_cannot_be_changed() -> None:
    fact = Received(ChannelId(2), b"x")
    with pytest.raises(FrozenInstanceError):
        fact.data = b"y"  # type: ignore[misc]  # that is what is tested


def test_the_union_holds_every_fact() -> None:
    values = {Address, FailureKind, facts.Failure}
    public = {getattr(facts, name) for name in facts.__all__ if isinstance(getattr(facts, name), type)}
    assert set(get_args(Fact)) == public - values


def test_protocols_are_called_as_alpn_calls_them() -> None:
    assert (facts.HTTP1, facts.HTTP2) == ("http/1.1", "h2")  # RFC 7301 section 6, RFC 9113 section 3.1


def test_only_a_child_has_an_exit_status() -> None:
    assert Closed(ChannelId(2)).exit is None
    assert Closed(ChannelId(3), "exited", -9).exit == -9


def test_failure_kinds_have_their_names_as_values() -> None:
    assert all(kind.value == kind.name.lower() for kind in FailureKind)


def test_defaults_of_facts() -> None:
    assert facts.Failure(FailureKind.TLS) == facts.Failure(FailureKind.TLS, "")
    home = Address("127.0.0.1", 1)
    assert facts.Accepted(ChannelId(2), home, home) == facts.Accepted(ChannelId(2), home, home, False, None)
    assert Closed(ChannelId(2)) == Closed(ChannelId(2), "", None)
