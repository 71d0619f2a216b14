import pytest

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines.approvals import Approval, ApprovalAnswer, ApprovalState, PendingApprovals, parse_approval
from svc_proto.schema.json_object import JsonObject

ALL = ("once", "session", "always", "deny")


LATER = 10.0  # long after every request of `ask`


def ask(approvals: PendingApprovals, *names: str, choices: tuple[str, ...] = ALL) -> list[Approval]:
    return [approvals.request(name, choices, now=float(place), within=60.0) for place, name in enumerate(names)]


def refused(approvals: PendingApprovals, answer: ApprovalAnswer, now: float = LATER) -> tuple[int, str]:
    """Give an answer that must be refused, without settling an approval; return the refusal's status and code."""
    before = len(approvals)
    with pytest.raises(Refused) as caught:
        approvals.answer(answer, now)
    assert len(approvals) == before
    return caught.value.status, caught.value.code


NOT_PENDING = (409, "approval_not_pending")


def test_several_requests_need_an_answer_that_names_its_call() -> None:
    approvals = PendingApprovals()
    first, second = ask(approvals, "a", "b")
    assert refused(approvals, ApprovalAnswer(choice="once", call_id="c")) == NOT_PENDING
    assert approvals.answer(ApprovalAnswer(choice="once", call_id="b"), 1.0) == [
        second
    ]  # at once: the answer names the call
    assert (second.state, second.choice, len(approvals)) == (ApprovalState.ANSWERED, "once", 1)
    assert (first.state, first.choice) == (ApprovalState.PENDING, "deny")
    assert refused(approvals, ApprovalAnswer(choice="once", call_id="b")) == NOT_PENDING
    assert refused(approvals, ApprovalAnswer(choice="once", call_id="b", everything=True)) == NOT_PENDING
    approvals = PendingApprovals()
    ask(approvals, "a", "b")
    for everything in (False, True):  # "all" cannot mean a request that the client has not seen
        assert refused(approvals, ApprovalAnswer(choice="once", everything=everything)) == NOT_PENDING
        assert refused(approvals, ApprovalAnswer(choice="session", everything=everything)) == NOT_PENDING


@pytest.mark.parametrize("answer", [ApprovalAnswer(choice="once"), ApprovalAnswer(choice="session", everything=True)])
def test_unnamed_answer_resolves_a_single_older_request(answer: ApprovalAnswer) -> None:
    approvals = PendingApprovals()
    (only,) = ask(approvals, "a")
    for early in (0.0, 1.999):
        assert refused(approvals, answer, early) == NOT_PENDING
    assert approvals.answer(answer, 2.0) == [only]


def test_denials_need_no_call_id_and_come_with_time() -> None:
    approvals = PendingApprovals()
    first, second = ask(approvals, "a", "b")
    assert approvals.answer(ApprovalAnswer(choice="deny"), 1.0) == [first]
    assert approvals.answer(ApprovalAnswer(choice="deny", everything=True), 1.0) == [second]
    approvals = PendingApprovals()
    both = ask(approvals, "a", "b")
    assert approvals.answer(ApprovalAnswer(choice="deny", everything=True), 1.0) == both
    assert len(approvals) == 0
    assert refused(approvals, ApprovalAnswer(choice="once")) == NOT_PENDING
    assert refused(approvals, ApprovalAnswer(choice="deny")) == NOT_PENDING
    approvals = PendingApprovals()
    one, other = ask(approvals, "a", "b")
    assert (one.deadline, other.deadline) == (60.0, 61.0)
    approvals.expire(one)
    approvals.withdraw(other)
    approvals.withdraw(one)  # settled: no effect
    assert [one.state, other.state] == [ApprovalState.EXPIRED, ApprovalState.WITHDRAWN]
    assert [one.choice, other.choice] == ["deny", "deny"]
    with pytest.raises(LocalProtocolError):
        approvals.expire(one)


@pytest.mark.parametrize("call_id", [None, "a"])
def test_only_offered_choices_are_accepted(call_id: str | None) -> None:
    approvals = PendingApprovals()
    ask(approvals, "a", choices=("once", "deny"))
    assert refused(approvals, ApprovalAnswer(choice="always", call_id=call_id)) == (400, "invalid_approval_choice")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"choice": "once"}, ApprovalAnswer(choice="once")),
        ({"choice": " Approve ", "call_id": None}, ApprovalAnswer(choice="once")),
        ({"choice": "approved", "all": True}, ApprovalAnswer(choice="once", everything=True)),
        ({"choice": "allow", "resolve_all": True}, ApprovalAnswer(choice="once", everything=True)),
        ({"choice": "deny", "all": "yes"}, ApprovalAnswer(choice="deny")),
        ({"choice": "always", "call_id": "call_7"}, ApprovalAnswer(choice="always", call_id="call_7")),
    ],
)
def test_valid_answers(body: dict[str, object], expected: ApprovalAnswer) -> None:
    assert parse_approval(JsonObject(body)) == expected


@pytest.mark.parametrize(
    "body", [{"choice": choice} for choice in (None, 1, "", "maybe", ["once"])] + [{"choice": "once", "call_id": 7}]
)
def test_invalid_answers(body: dict[str, object]) -> None:
    with pytest.raises(Refused) as caught:
        parse_approval(JsonObject(body))
    assert (caught.value.status, caught.value.code) == (400, "invalid_approval_choice")
