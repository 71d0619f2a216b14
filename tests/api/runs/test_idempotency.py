from svc_proto.agent.interface import TextDelta
from svc_proto.api.chat.store_requests import AddMessages
from svc_proto.api.runs.idempotency import KEY_TTL, MAX_KEYS, IdempotencyKeys, fingerprint
from svc_proto.api.runs.run import Run
from tests.api.scripted_agent import TurnHarness


def begun() -> tuple[TurnHarness, Run]:
    book = TurnHarness()
    book.chat(book.session())
    return book, book.api.runs.find(book.hand.turn.run_id)


def test_an_entry_lives_for_five_minutes() -> None:
    book, run = begun()
    keys = IdempotencyKeys("theme")
    keyed = keys.for_request("k", "f", book.engine)
    keyed.remember(run)
    assert keyed.name == keys.for_request("k", "g", book.engine).name
    assert keyed.name != IdempotencyKeys("other").for_request("k", "f", book.engine).name
    assert keys.for_request("k", "f", book.engine).find() is run
    assert keys.for_request("k", "other", book.engine).find() is None
    assert keys.for_request("other", "f", book.engine).find() is None
    assert keys.for_request("k", "f", book.engine, "another pairing").find() is None
    book.after(KEY_TTL - 1)
    keyed.remember(run)  # stored already: the time does not start again
    book.after(1)
    assert keyed.find() is None
    keyed.remember(run)
    for number in range(MAX_KEYS):
        keys.for_request(f"n{number}", "f", book.engine).remember(run)
    assert keyed.find() is None
    assert keys.for_request("n0", "f", book.engine).find() is run
    keyless = keys.for_request("", "f", book.engine)
    keyless.remember(run)
    assert (keyless.name, keyless.find()) == ("", None)


def test_failed_run_is_not_reused() -> None:
    book, run = begun()
    keyed = IdempotencyKeys("theme").for_request("k", "f", book.engine)
    keyed.remember(run)
    book.hand.finish("length")
    assert keyed.find() is None


def test_run_that_is_being_stopped_is_not_reused() -> None:
    book, run = begun()
    keyed = IdempotencyKeys("theme").for_request("k", "f", book.engine)
    keyed.remember(run)
    book.hand.emit(TextDelta("Hello"))
    book.hold = (AddMessages,)
    book.within(lambda: book.api.runs.stop(run.record.id))
    assert (run.ended, keyed.find()) == (None, None)
    ends: list[object] = []
    book.within(lambda: book.engine.spawn(keyed.wait_stopped(), on_done=lambda _: ends.append(run.ended)))
    assert ends == []
    book.release()
    assert ends == [run.ended] != [None]


def test_fingerprint_covers_the_named_members() -> None:
    names = ("model", "messages")
    one = fingerprint({"model": "m", "messages": [1], "temperature": 1}, names, "s")
    assert one == fingerprint({"messages": [1], "model": "m"}, names, "s")
    assert one != fingerprint({"messages": [2], "model": "m"}, names, "s")
    assert one != fingerprint({"messages": [1], "model": "m"}, names, None)


def test_repeated_request_for_a_stream_ends_the_first_one() -> None:
    book, run = begun()
    keyed = IdempotencyKeys("theme").for_request("k", "f", book.engine)
    book.within(lambda: book.engine.spawn(keyed.stop_earlier(book.api.runs)))
    assert not book.hand.cancelled
    keyed.remember(run)
    for _ in range(2):
        book.within(lambda: book.engine.spawn(keyed.stop_earlier(book.api.runs)))
        assert book.api.runs.outcomes["cancelled"] == 1
