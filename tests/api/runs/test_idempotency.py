from __future__ import annotations

from svc_proto.api.runs.idempotency import KEEP, MAX_KEYS, IdempotencyKeys, fingerprint
from svc_proto.api.runs.run import Run
from tests.api.scripted_agent import TurnBook


def begun() -> tuple[TurnBook, Run]:
    book = TurnBook()
    book.chat(book.session())
    return book, book.api.runs.find(book.hand.turn.run_id)


def test_an_entry_lives_for_five_minutes() -> None:
    book, run = begun()
    keys = IdempotencyKeys("theme")
    keyed = keys.keyed("k", "f", book.engine)
    keyed.keep(run)
    assert (
        keyed.name
        == keys.keyed("k", "g", book.engine).name
        != IdempotencyKeys("other").keyed("k", "f", book.engine).name
    )
    assert keys.keyed("k", "f", book.engine).find() is run
    assert keys.keyed("k", "other", book.engine).find() is None
    assert keys.keyed("other", "f", book.engine).find() is None
    book.after(KEEP - 1)
    keyed.keep(run)  # it was known: its time is not longer for that
    book.after(1)
    assert keyed.find() is None
    keyed.keep(run)
    for number in range(MAX_KEYS):
        keys.keyed(f"n{number}", "f", book.engine).keep(run)
    assert keyed.find() is None
    assert keys.keyed("n0", "f", book.engine).find() is run


def test_without_a_key_nothing_is_kept() -> None:
    book, run = begun()
    keyed = IdempotencyKeys("theme").keyed("", "f", book.engine)
    keyed.keep(run)
    assert (keyed.name, keyed.find()) == ("", None)


def test_a_run_that_failed_answers_nobody_else() -> None:
    book, run = begun()
    keyed = IdempotencyKeys("theme").keyed("k", "f", book.engine)
    keyed.keep(run)
    book.hand.finish("length")
    assert keyed.find() is None


def test_the_fingerprint_is_of_what_is_named() -> None:
    names = ("model", "messages")
    one = fingerprint({"model": "m", "messages": [1], "temperature": 1}, names, "s")
    assert one == fingerprint({"messages": [1], "model": "m"}, names, "s")
    assert one != fingerprint({"messages": [2], "model": "m"}, names, "s")
    assert one != fingerprint({"messages": [1], "model": "m"}, names, None)
