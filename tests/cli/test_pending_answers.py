"""Pending answers of a realtime agent: added, delivered, failed, dropped, cancelled."""

from __future__ import annotations

from svc_proto.cli.pending_answers import PendingAnswers


def owed(n: int) -> PendingAnswers:
    promises = PendingAnswers()
    for _ in range(n):
        promises.add()
    return promises


def test_each_is_kept_by_itself() -> None:
    promises = owed(2)
    promises.resolve_one()
    assert promises
    promises.resolve_one()
    assert not promises


def test_one_that_was_never_made_is_not_owed_later() -> None:
    promises = PendingAnswers()
    promises.resolve_one()
    promises.add()
    assert promises


def test_an_error_breaks_one_when_its_task_has_failed_and_only_once() -> None:
    promises = owed(1)
    assert not promises.has_failed()
    promises.completed(ok=True)
    assert not promises.has_failed()
    promises.completed(ok=False)
    assert promises.has_failed()
    assert not promises.has_failed()


def test_what_the_relay_drops_is_not_owed() -> None:
    promises = owed(3)
    promises.clear()
    assert not promises


def test_a_cancelled_turn_ends_only_what_the_person_forgave() -> None:
    promises = owed(2)
    promises.turn_cancelled()
    assert promises
    promises.cancel_all()
    assert promises  # the relay may still deliver an answer
    promises.turn_cancelled()
    assert not promises
    promises.add()
    promises.turn_cancelled()
    assert promises
