"""Pairing codes in Redis, and keys of invites that every node accepts until a device has paired with them."""

from __future__ import annotations

from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta
from tests.relay.coordinator_harness import CoordinatorHarness

CODE, KEY = "ABC123", "5" * 64
AT_REDIS = b"svc:0:code:ABC123"
INVITE = b'{"carries_key":false,"own_key":true,"key_hash":"%s"}' % KEY.encode()
OTHER = b'{"carries_key":false,"own_key":false,"key_hash":""}'


def test_what_is_attached_to_a_code_comes_back() -> None:
    one = CoordinatorHarness()
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
        one.run(one.fellows.register_code("abc123", given), done)
        *told, (verb, key, text, *life) = one.book.new_commands()  # type: ignore[misc]  # a command
        assert (verb, key, life) == (b"SET", AT_REDIS, [b"EX", b"600"])  # type: ignore[has-type]
        one.book.answers(*([1] * len(told)), "OK")
        one.run(one.fellows.consume_code(" abc123 "), done)
        assert one.book.new_commands() == [[b"GETDEL", AT_REDIS]]
        one.book.answers(text)  # type: ignore[has-type]
        one.new_messages()
    assert done == [None, meta, None, PairingMeta()]
    one.run(one.fellows.consume_code("no code"), done)
    one.run(one.fellows.consume_code("abc123"), done)
    one.book.new_commands()
    one.book.answers(None)
    assert done[4:] == [None, None]


def invited(one: CoordinatorHarness, code: str = CODE, key: str = KEY) -> None:
    one.deliver("invited", {"code": code, "key_hash": key})


def good(one: CoordinatorHarness, key: str = KEY) -> bool:
    return one.relay.codes.issues_key(key, one.book.engine.now)


def put(one: CoordinatorHarness, meta: PairingMeta, answer: object = "OK") -> list[Any]:
    """Register a code; return the number of broadcasts, which precede the stored code, and the result."""
    done: list[Any] = []
    one.run(one.fellows.register_code(CODE.lower(), meta), done)
    *told, kept = one.book.new_commands()
    assert [words[0] for words in told] == [b"PUBLISH"] * len(told)  # type: ignore[index]
    assert kept[:2] == [b"SET", AT_REDIS]  # type: ignore[index]
    one.book.answers(*([1] * len(told)), answer)
    return [len(told), *done]


def test_the_key_of_an_invite_is_good_from_its_mint_until_its_code_is_shown() -> None:
    one = CoordinatorHarness()
    assert put(one, PairingMeta(key_hash=KEY)) == [1, None]
    assert good(one)
    assert one.fellows.export_state()["invites"] == [{"code": CODE, "key_hash": KEY, "age": 0.0}]
    done: list[Any] = []
    one.run(one.fellows.consume_code(CODE), done)
    assert one.book.new_commands() == [[b"GETDEL", AT_REDIS]]
    one.book.answers(INVITE)
    assert done == [PairingMeta(own_key=True, key_hash=KEY)]
    assert one.new_messages() == [("invited", {"code": CODE})]
    assert not good(one)
    assert "invites" not in one.fellows.export_state()


def test_of_codes_without_a_key_nobody_hears() -> None:
    one = CoordinatorHarness()
    assert put(one, PairingMeta()) == [0, None]
    assert "invites" not in one.fellows.export_state()


def test_a_code_that_is_made_anew_ends_the_key_of_the_old_one() -> None:
    one = CoordinatorHarness()
    invited(one)
    assert put(one, PairingMeta()) == [1, None]
    assert not good(one)


def test_what_cannot_be_agreed_on_is_refused() -> None:
    one = CoordinatorHarness()
    one.book.close()
    done: list[Any] = []
    one.run(one.fellows.register_code(CODE, PairingMeta()), done)
    one.run(one.fellows.consume_code(CODE), done)
    assert [(each.status, each.code) for each in done] == [(503, "cluster_unavailable")] * 2
    with pytest.raises(Refused, match="code must be"):
        next(one.fellows.register_code("no code", PairingMeta()))


def test_the_key_of_another_nodes_invite_is_good_here() -> None:
    one = CoordinatorHarness()
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
    assert "invites" not in one.fellows.export_state()


@pytest.mark.parametrize(("there", "so"), [(INVITE, True), (OTHER, False), (None, False), (b"no JSON", False)])
def test_what_a_node_says_of_itself_is_compared_with_redis(there: object, so: bool) -> None:
    one = CoordinatorHarness()
    one.deliver("state", {"invites": [{"code": CODE, "key_hash": KEY, "age": 500}]}, to_me=True)
    assert not good(one)
    assert one.book.new_commands() == [[b"GET", AT_REDIS]]
    one.book.answers(there)
    assert good(one) is so
    one.book.after(CODE_LIFETIME - 500)
    assert not good(one)


@pytest.mark.parametrize(("there", "so"), [(INVITE, True), (OTHER, False), (None, False)])
def test_who_has_missed_something_compares_what_it_knows(there: object, so: bool) -> None:
    one = CoordinatorHarness()
    invited(one)
    one.book.within(one.fellows.on_messages_missed)
    assert one.book.new_commands() == [[b"GET", AT_REDIS]]
    one.book.answers(there)
    assert good(one) is so
    one.loads()


def test_who_loses_redis_while_it_compares_does_so_again() -> None:
    one = CoordinatorHarness()
    invited(one)
    one.book.within(one.fellows.on_messages_missed)
    one.book.close()
    assert good(one)
    one.loads()
