"""Which responses of a provider count, and when the next may be asked for."""

from __future__ import annotations

from svc_proto.voice.realtime.orders import ReadAloud, Respond
from svc_proto.voice.realtime.responses import (
    FREE_WITHIN,
    MAX_DEAD,
    MAX_OPEN,
    MAX_ORPHANS,
    ORPHANED_FOR,
    ProviderResponses,
    Start,
)

ASK = Respond()


def test_the_one_that_was_asked_for() -> None:
    responses = ProviderResponses()
    assert [responses.talking] == [False]
    assert responses.start("early", 0.0) is Start.STRAY
    assert responses.over("early") == []
    assert responses.ask(ASK, 0.0) == [ASK]
    assert responses.talking
    assert responses.start("r1", 0.0) is Start.OURS
    assert responses.current == "r1"
    assert responses.start("r1", 0.0) is Start.KNOWN
    assert responses.start("r2", 0.0) is Start.STRAY
    assert responses.start("r2", 0.0) is Start.IGNORED
    assert responses.over("r2") == []
    responses.bury("r1")
    assert [responses.current] == [None]
    assert responses.start("r1", 0.0) is Start.IGNORED


def test_the_next_waits_until_the_provider_is_free() -> None:
    responses = ProviderResponses()
    responses.ask(ASK, 0.0)
    responses.start("r1", 0.0)
    responses.bury("r1")
    assert responses.ask(ReadAloud("x"), 1.0) == []
    assert [responses.due] == [1.0 + FREE_WITHIN]
    assert responses.over("r1") == [ReadAloud("x")]
    assert [responses.due] == [None]
    responses.start("r2", 1.0)
    assert responses.ask(ASK, 2.0) == []
    assert responses.assume_free() == [ASK]  # it does not say so
    assert responses.start("r3", 2.0) is Start.OURS


def test_what_was_given_up_before_it_started() -> None:
    responses = ProviderResponses()
    responses.ask(ASK, 0.0)
    responses.give_up(0.0)
    assert not responses.talking
    responses.ask(ASK, 1.0)
    assert responses.start("orphan", 1.0) is Start.STRAY
    assert responses.start("ours", 1.0) is Start.OURS
    responses.give_up(1.0)
    assert responses.start("ours", 1.0) is Start.IGNORED
    responses.give_up(1.0)  # nothing to give up


def test_an_orphan_that_never_comes() -> None:
    responses = ProviderResponses()
    responses.ask(ASK, 0.0)
    responses.give_up(0.0)
    responses.ask(ASK, 1.0)
    assert responses.start("ours", ORPHANED_FOR) is Start.OURS
    responses.give_up(ORPHANED_FOR)
    responses.ask(ASK, ORPHANED_FOR)  # waits: `ours` is not over
    responses.give_up(ORPHANED_FOR)  # so nobody was asked, and there is no orphan
    responses.over("ours")
    responses.ask(ASK, ORPHANED_FOR)
    assert responses.start("next", ORPHANED_FOR) is Start.OURS


def test_what_starts_before_it_was_asked_for_is_not_ours() -> None:
    responses = ProviderResponses()
    responses.start("stray", 0.0)
    assert responses.ask(ASK, 0.0) == []  # waits: the provider is at `stray`
    assert responses.start("another", 1.0) is Start.STRAY
    assert responses.over("stray") == []
    assert responses.over("another") == [ASK]
    assert responses.start("ours", 1.0) is Start.OURS


def test_each_orphan_has_its_own_five_seconds() -> None:
    responses = ProviderResponses()
    responses.ask(ASK, 0.0)
    responses.give_up(0.0)  # the provider drops this one
    responses.ask(ASK, ORPHANED_FOR)
    responses.give_up(ORPHANED_FOR)
    responses.ask(ASK, ORPHANED_FOR)
    assert responses.start("orphan", ORPHANED_FOR) is Start.STRAY
    assert responses.start("ours", ORPHANED_FOR) is Start.OURS


def test_memory_is_bounded() -> None:
    responses = ProviderResponses()
    for number in range(MAX_DEAD):
        responses.bury(f"dead {number}")
    assert responses.start("dead 0", 0.0) is Start.IGNORED
    responses.bury("one more")
    responses.ask(ASK, 0.0)
    assert responses.start("dead 0", 0.0) is Start.OURS
    responses = ProviderResponses()
    for number in range(MAX_OPEN):
        responses.start(f"open {number}", 0.0)
    for number in range(1, MAX_OPEN):
        responses.over(f"open {number}")
    assert responses.ask(ASK, 0.0) == []  # the first is not over
    responses = ProviderResponses()
    for number in range(max(MAX_DEAD, MAX_OPEN) + 5):
        responses.start(f"stray {number}", 0.0)
    assert responses.start("stray 0", 0.0) is Start.STRAY  # forgotten
    assert responses.start(f"stray {MAX_DEAD + 4}", 0.0) is Start.IGNORED
    responses = ProviderResponses()
    for _ in range(MAX_ORPHANS + 1):
        responses.ask(ASK, 0.0)
        responses.give_up(0.0)
    responses.ask(ASK, 0.0)
    meanings = [responses.start(f"r{number}", 0.0) for number in range(MAX_ORPHANS + 1)]
    assert meanings == [*[Start.STRAY] * MAX_ORPHANS, Start.OURS]
