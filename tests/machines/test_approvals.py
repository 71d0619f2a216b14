from __future__ import annotations

import pytest

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines.approvals import (
    APPROVAL_TABLE,
    Approvals,
    ApprovalState,
    ApprovalTrigger,
    parse_approval,
)
from tests.machines.lifecycles import check_table

ROWS = [
    ("pending", (ApprovalTrigger.ANSWER,), "answered"),
    ("pending", (ApprovalTrigger.TIMEOUT,), "lapsed"),
    ("pending", (ApprovalTrigger.STOP,), "withdrawn"),
]
ALL = ("once", "session", "always", "deny")


def test_the_table() -> None:
    check_table(APPROVAL_TABLE, ApprovalState, ApprovalTrigger, ROWS)


def test_the_oldest_question_is_answered_first() -> None:
    approvals = Approvals()
    first, second = approvals.ask(ALL, 60.0), approvals.ask(ALL, 61.0)
    assert approvals.answer("once") == [first]
    assert (first.state, first.choice, len(approvals)) == (ApprovalState.ANSWERED, "once", 1)
    assert (second.state, second.choice) == (ApprovalState.PENDING, "deny")


def test_all_at_once() -> None:
    approvals = Approvals()
    both = [approvals.ask(ALL, 60.0), approvals.ask(ALL, 61.0)]
    assert approvals.answer("session", everything=True) == both
    assert len(approvals) == 0
    with pytest.raises(Refused) as refused:
        approvals.answer("once")
    assert (refused.value.status, refused.value.code) == (409, "approval_not_pending")


def test_only_what_was_offered_can_be_chosen() -> None:
    approvals = Approvals()
    approvals.ask(("once", "deny"), 60.0)
    with pytest.raises(Refused) as refused:
        approvals.answer("always")
    assert (refused.value.status, refused.value.code) == (400, "invalid_approval_choice")
    assert len(approvals) == 1


def test_nobody_answers() -> None:
    approvals = Approvals()
    one, other = approvals.ask(ALL, 60.0), approvals.ask(ALL, 60.0)
    approvals.lapse(one)
    approvals.withdraw(other)
    approvals.withdraw(one)  # settled: nothing happens
    assert [one.state, other.state] == [ApprovalState.LAPSED, ApprovalState.WITHDRAWN]
    assert [one.choice, other.choice] == ["deny", "deny"]
    with pytest.raises(LocalProtocolError):
        approvals.lapse(one)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"choice": "once"}, ("once", False)),
        ({"choice": " Approve "}, ("once", False)),
        ({"choice": "approved", "all": True}, ("once", True)),
        ({"choice": "allow", "resolve_all": True}, ("once", True)),
        ({"choice": "deny", "all": "yes"}, ("deny", False)),
        ({"choice": "always"}, ("always", False)),
    ],
)
def test_what_a_client_may_say(body: dict[str, object], expected: tuple[str, bool]) -> None:
    assert parse_approval(body) == expected


@pytest.mark.parametrize("choice", [None, 1, "", "maybe", ["once"]])
def test_what_it_may_not(choice: object) -> None:
    with pytest.raises(Refused) as refused:
        parse_approval({"choice": choice})
    assert (refused.value.status, refused.value.code) == (400, "invalid_approval_choice")
