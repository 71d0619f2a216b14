from __future__ import annotations

from svc_proto.api.idempotency import KEEP, MAX_KEYS, IdempotencyKeys, fingerprint
from svc_proto.basics.moment import Moment
from tests.api.puppet import TurnBook

NOW = Moment(10.0, 1_800_000_000.0)


def test_an_entry_lives_for_five_minutes() -> None:
    book = TurnBook()
    book.chat(book.session())
    run = book.api.runs.find(book.hand.turn.run_id)
    keys = IdempotencyKeys()
    keys.keep("k", "f", run, NOW)
    assert keys.find("k", "f", NOW) is run
    assert keys.find("k", "other", NOW) is None
    assert keys.find("other", "f", NOW) is None
    assert keys.find("k", "f", NOW.at(10.0 + KEEP)) is None
    for number in range(MAX_KEYS):
        keys.keep(f"n{number}", "f", run, NOW)
    assert keys.find("k", "f", NOW) is None
    assert keys.find("n0", "f", NOW) is run


def test_a_run_that_failed_answers_nobody_else() -> None:
    book = TurnBook()
    book.chat(book.session())
    run = book.api.runs.find(book.hand.turn.run_id)
    keys = IdempotencyKeys()
    keys.keep("k", "f", run, NOW)
    book.hand.finish("length")
    assert keys.find("k", "f", NOW) is None


def test_the_fingerprint_is_of_what_is_named() -> None:
    names = ("model", "messages")
    one = fingerprint({"model": "m", "messages": [1], "temperature": 1}, names, "s")
    assert one == fingerprint({"messages": [1], "model": "m"}, names, "s")
    assert one != fingerprint({"messages": [2], "model": "m"}, names, "s")
    assert one != fingerprint({"messages": [1], "model": "m"}, names, None)
