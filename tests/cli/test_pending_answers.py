from __future__ import annotations

from svc_proto.cli.pending_answers import PendingAnswers


def owed(n: int) -> PendingAnswers:
    promises = PendingAnswers()
    for _ in range(n):
        promises.add()
    return promises


def test_each_answer_is_resolved_separately() -> None:
    promises = owed(2)
    promises.resolve_one()
    assert promises
    promises.resolve_one()
    assert not promises


def test_resolve_without_a_pending_answer_has_no_effect() -> None:
    promises = PendingAnswers()
    promises.resolve_one()
    promises.add()
    assert promises


def test_failed_task_fails_one_answer_once() -> None:
    promises = owed(1)
    assert not promises.has_failed()
    promises.completed(ok=True)
    assert not promises.has_failed()
    promises.completed(ok=False)
    assert promises.has_failed()
    assert not promises.has_failed()


def test_dropped_answers_are_not_pending() -> None:
    promises = owed(3)
    promises.clear()
    assert not promises


def test_cancelled_turn_ends_only_cancelled_answers() -> None:
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
