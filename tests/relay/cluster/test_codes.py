"""Pairing codes that a node stores in Redis, and keys of invites that it announces, accepts and verifies there."""

from __future__ import annotations

from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta
from tests.cluster.harness import SIGNER
from tests.relay.coordinator_harness import CoordinatorHarness

CODE, KEY = "ABC123", "5" * 64
AT_REDIS = b"svc:0:code:ABC123"
INVITE_TEXT = b'{"carries_key":false,"own_key":true,"key_hash":"%s"}' % KEY.encode()
INVITE = SIGNER.sign(AT_REDIS.decode(), INVITE_TEXT)
OTHER = SIGNER.sign(AT_REDIS.decode(), b'{"carries_key":false,"own_key":false,"key_hash":""}')
FORGED = SIGNER.sign(AT_REDIS.decode() + "4", INVITE_TEXT)


def test_code_metadata_is_stored_and_consumed(one: CoordinatorHarness) -> None:
    meta = PairingMeta(
        ttl_seconds=60.0,
        grants={"chat": None, "bridge": 5.0},
        transport_hint="wss",
        endpoints=[{"role": "lan"}],
        carries_key=True,
        own_key=True,
        key_hash="ab" * 32,
    )
    done: list[Any] = []
    for given in (meta, PairingMeta()):
        one.run(one.coordinator.register_code("abc123", given), done)
        *told, (verb, key, text, *life) = one.book.new_commands()  # type: ignore[misc]  # a command
        assert (verb, key, life) == (b"SET", AT_REDIS, [b"EX", b"600"])  # type: ignore[has-type]
        one.book.answers(*([1] * len(told)), "OK")
        one.run(one.coordinator.consume_code(" abc123 "), done)
        assert one.book.new_commands() == [[b"GETDEL", AT_REDIS]]
        one.book.answers(text)  # type: ignore[has-type]
        one.new_messages()
    assert done == [None, meta, None, PairingMeta()]
    one.run(one.coordinator.consume_code("no code"), done)
    one.run(one.coordinator.consume_code("abc123"), done)
    one.book.new_commands()
    one.book.answers(None)
    assert done[4:] == [None, None]
    for forged in (INVITE_TEXT, FORGED):
        one.run(one.coordinator.consume_code("abc123"), done)
        one.book.new_commands()
        one.book.answers(forged)
    assert done[6:] == [None, None]


def invited(one: CoordinatorHarness, code: str = CODE, key: str = KEY) -> None:
    one.deliver("invited", {"code": code, "key_hash": key})


def good(one: CoordinatorHarness, key: str = KEY) -> bool:
    return one.relay.codes.issues_key(key, one.book.engine.now)


def put(one: CoordinatorHarness, meta: PairingMeta, answer: object = "OK") -> list[Any]:
    """Register a code; return the number of broadcasts before it is stored, then the result of the registration."""
    done: list[Any] = []
    one.run(one.coordinator.register_code(CODE.lower(), meta), done)
    *told, kept = one.book.new_commands()
    assert [words[0] for words in told] == [b"PUBLISH"] * len(told)  # type: ignore[index]
    assert kept[:2] == [b"SET", AT_REDIS]  # type: ignore[index]
    one.book.answers(*([1] * len(told)), answer)
    return [len(told), *done]


def test_invite_key_is_valid_until_its_code_is_consumed(one: CoordinatorHarness) -> None:
    assert put(one, PairingMeta(key_hash=KEY)) == [1, None]
    assert good(one)
    assert one.coordinator.export_state()["invites"] == [{"code": CODE, "key_hash": KEY, "age": 0.0}]
    done: list[Any] = []
    one.run(one.coordinator.consume_code(CODE), done)
    assert one.book.new_commands() == [[b"GETDEL", AT_REDIS]]
    one.book.answers(INVITE)
    assert done == [PairingMeta(own_key=True, key_hash=KEY)]
    assert one.new_messages() == [("invited", {"code": CODE})]
    assert not good(one)
    assert "invites" not in one.coordinator.export_state()


def test_code_without_key_is_not_broadcast(one: CoordinatorHarness) -> None:
    assert put(one, PairingMeta()) == [0, None]
    assert "invites" not in one.coordinator.export_state()


def test_registering_a_code_again_ends_the_old_key(one: CoordinatorHarness) -> None:
    invited(one)
    assert put(one, PairingMeta()) == [1, None]
    assert not good(one)


def test_codes_are_refused_without_redis(one: CoordinatorHarness) -> None:
    one.book.close()
    done: list[Any] = []
    one.run(one.coordinator.register_code(CODE, PairingMeta()), done)
    one.run(one.coordinator.consume_code(CODE), done)
    assert [(each.status, each.code) for each in done] == [(503, "cluster_unavailable")] * 2
    with pytest.raises(Refused, match="code must be"):
        next(one.coordinator.register_code("no code", PairingMeta()))


def test_invite_key_of_another_node_is_accepted(one: CoordinatorHarness) -> None:
    invited(one, code="no code")
    assert not good(one)
    invited(one)
    assert good(one)
    assert not good(one, "6" * 64)
    invited(one, key="")
    assert not good(one)
    invited(one)
    assert good(one)
    one.book.after(CODE_LIFETIME)
    assert not good(one)
    assert "invites" not in one.coordinator.export_state()


@pytest.mark.parametrize(("there", "so"), [(INVITE, True), (OTHER, False), (None, False), (FORGED, False)])
def test_invites_in_a_node_state_are_verified_in_redis(one: CoordinatorHarness, there: object, so: bool) -> None:
    one.deliver("state", {"invites": [{"code": CODE, "key_hash": KEY, "age": 500}]}, to_me=True)
    assert not good(one)
    assert one.book.new_commands() == [[b"GET", AT_REDIS]]
    one.book.answers(there)
    assert good(one) is so
    one.book.after(CODE_LIFETIME - 500)
    assert not good(one)


@pytest.mark.parametrize(("there", "so"), [(INVITE, True), (OTHER, False), (None, False)])
def test_invites_are_verified_after_missed_messages(one: CoordinatorHarness, there: object, so: bool) -> None:
    invited(one)
    one.book.within(one.coordinator.on_messages_missed)
    assert one.book.new_commands() == [[b"GET", AT_REDIS]]
    one.book.answers(there)
    assert good(one) is so
    one.loads()


def test_lost_redis_repeats_the_verification(one: CoordinatorHarness) -> None:
    invited(one)
    one.book.within(one.coordinator.on_messages_missed)
    one.book.close()
    assert good(one)
    one.loads()
