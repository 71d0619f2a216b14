"""Pairing codes that a node stores in Redis, and keys of invites that it announces, accepts and verifies there."""

from typing import Any

import pytest
from attrs import evolve, fields

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


def test_code_metadata_is_stored_and_consumed(harness: CoordinatorHarness) -> None:
    terms = PairingMeta(ttl_seconds=60.0, grants={"chat": None, "bridge": 5.0}, transport_hint="wss")
    meta = evolve(terms, endpoints=[{"role": "lan"}], carries_key=True, own_key=True, key_hash="ab" * 32)
    meta = evolve(meta, keep_earlier=True, audience="mcp")
    assert [each.name for each in fields(PairingMeta) if getattr(meta, each.name) == each.default] == []
    done: list[Any] = []
    for given in (meta, PairingMeta()):
        harness.run(harness.coordinator.register_code("abc123", given), done)
        *told, (verb, key, text, *life) = harness.book.new_commands()  # type: ignore[misc]  # a command
        assert (verb, key, life) == (b"SET", AT_REDIS, [b"EX", b"600"])  # type: ignore[has-type]
        harness.book.answers(*([1] * len(told)), "OK")
        harness.run(harness.coordinator.consume_code(" abc123 "), done)
        assert harness.book.new_commands() == [[b"GETDEL", AT_REDIS]]
        harness.book.answers(text)  # type: ignore[has-type]
        harness.new_messages()
    assert done == [None, meta, None, PairingMeta()]
    harness.run(harness.coordinator.consume_code("no code"), done)
    for reply in (None, INVITE_TEXT, FORGED):
        harness.run(harness.coordinator.consume_code("abc123"), done)
        harness.book.new_commands()
        harness.book.answers(reply)
    assert done[4:] == [None] * 4


def invited(harness: CoordinatorHarness, code: str = CODE, key: str = KEY) -> None:
    harness.deliver("invited", {"code": code, "key_hash": key})


def good(harness: CoordinatorHarness, key: str = KEY) -> bool:
    return harness.relay.codes.issues_key(key, harness.book.engine.now)


def put(harness: CoordinatorHarness, meta: PairingMeta, answer: object = "OK") -> list[Any]:
    """Register a code; return the number of broadcasts before it is stored, then the result of the registration."""
    done: list[Any] = []
    harness.run(harness.coordinator.register_code(CODE.lower(), meta), done)
    *told, kept = harness.book.new_commands()
    assert [words[0] for words in told] == [b"PUBLISH"] * len(told)  # type: ignore[index]
    assert kept[:2] == [b"SET", AT_REDIS]  # type: ignore[index]
    harness.book.answers(*([1] * len(told)), answer)
    return [len(told), *done]


def test_invite_key_is_valid_until_its_code_is_consumed(harness: CoordinatorHarness) -> None:
    assert put(harness, PairingMeta(key_hash=KEY)) == [1, None]
    assert good(harness)
    assert harness.coordinator.export_state()["invites"] == [{"code": CODE, "key_hash": KEY, "age": 0.0}]
    done: list[Any] = []
    harness.run(harness.coordinator.consume_code(CODE), done)
    assert harness.book.new_commands() == [[b"GETDEL", AT_REDIS]]
    harness.book.answers(INVITE)
    assert done == [PairingMeta(own_key=True, key_hash=KEY)]
    assert harness.new_messages() == [("invited", {"code": CODE})]
    assert not good(harness)
    assert "invites" not in harness.coordinator.export_state()


def test_keys_of_codes_are_broadcast_until_they_are_replaced(harness: CoordinatorHarness) -> None:
    assert put(harness, PairingMeta()) == [0, None]
    assert "invites" not in harness.coordinator.export_state()
    invited(harness)
    assert put(harness, PairingMeta()) == [1, None]
    assert not good(harness)


def test_codes_are_refused_without_redis(harness: CoordinatorHarness) -> None:
    harness.book.close()
    done: list[Any] = []
    harness.run(harness.coordinator.register_code(CODE, PairingMeta()), done)
    harness.run(harness.coordinator.consume_code(CODE), done)
    assert [(each.status, each.code) for each in done] == [(503, "cluster_unavailable")] * 2
    with pytest.raises(Refused, match="code must be"):
        next(harness.coordinator.register_code("no code", PairingMeta()))


def test_invite_key_of_another_node_is_accepted(harness: CoordinatorHarness) -> None:
    invited(harness, code="no code")
    assert not good(harness)
    invited(harness)
    assert good(harness)
    assert not good(harness, "6" * 64)
    invited(harness, key="")
    assert not good(harness)
    invited(harness)
    assert good(harness)
    harness.book.after(CODE_LIFETIME)
    assert not good(harness)
    assert "invites" not in harness.coordinator.export_state()


@pytest.mark.parametrize(("there", "so"), [(INVITE, True), (OTHER, False), (None, False), (FORGED, False)])
def test_invites_in_a_node_state_are_verified_in_redis(harness: CoordinatorHarness, there: object, so: bool) -> None:
    harness.deliver("state", {"invites": [{"code": CODE, "key_hash": KEY, "age": 500}]}, to_me=True)
    assert not good(harness)
    assert harness.book.new_commands() == [[b"GET", AT_REDIS]]
    harness.book.answers(there)
    assert good(harness) is so
    harness.book.after(50)
    invites = harness.coordinator.export_state().get("invites")
    assert invites == ([{"code": CODE, "key_hash": KEY, "age": 550.0}] if so else None)
    harness.book.after(CODE_LIFETIME - 550)
    assert not good(harness)
    assert "invites" not in harness.coordinator.export_state()


@pytest.mark.parametrize(("there", "so"), [(INVITE, True), (OTHER, False), (None, False)])
def test_invites_are_verified_after_missed_messages(harness: CoordinatorHarness, there: object, so: bool) -> None:
    invited(harness)
    harness.book.within(harness.coordinator.on_messages_missed)
    assert harness.book.new_commands() == [[b"GET", AT_REDIS]]
    harness.book.answers(there)
    assert good(harness) is so
    harness.loads()


def test_lost_redis_repeats_the_verification(harness: CoordinatorHarness) -> None:
    invited(harness)
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.book.close()
    assert good(harness)
    harness.loads()
