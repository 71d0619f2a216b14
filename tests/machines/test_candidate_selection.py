from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.candidate_selection import (
    CancelProbe,
    Candidate,
    CandidateSelector,
    Chosen,
    Probe,
    SelectionAction,
    SelectionState,
)

LAN = Candidate("lan", 0, "http://192.0.2.1:8767")
LAN2 = Candidate("lan", 0, "http://192.0.2.2:8767")
MESH = Candidate("mesh", 1, "http://100.64.0.1:8767")
PUBLIC = Candidate("public", 2, "https://relay.example")


def test_tiers_are_tried_in_order_and_the_first_answer_wins() -> None:
    choice = CandidateSelector([PUBLIC, MESH, LAN])
    assert choice.start(0.0) == [Probe(LAN)]
    assert choice.next_deadline() == 4.0
    assert choice.answered(LAN, 3.9) == [Chosen(LAN)]
    assert (choice.state, choice.chosen) == (SelectionState.CHOSEN, LAN)
    assert choice.next_deadline() is None
    choice = CandidateSelector([LAN, LAN2, MESH])
    assert choice.start(0.0) == [Probe(LAN), Probe(LAN2)]
    assert choice.answered(LAN2, 1.0) == [CancelProbe(LAN), Chosen(LAN2)]
    assert choice.answered(LAN, 1.1) == []  # too late to matter
    choice = CandidateSelector([LAN, LAN2, MESH])
    choice.start(0.0)
    assert choice.failed(LAN, 0.5) == []
    assert choice.failed(LAN, 0.5) == []  # without a second effect
    assert choice.failed(LAN2, 0.6) == [Probe(MESH)]
    assert choice.failed(MESH, 0.7) == [Chosen(None)]
    assert choice.state is SelectionState.NONE
    choice = CandidateSelector([LAN, MESH])
    choice.start(10.0)
    assert choice.advance(13.999) == []
    assert choice.advance(14.0) == [CancelProbe(LAN), Probe(MESH)]
    assert choice.next_deadline() == 18.0


def test_a_selection_lasts_a_minute_or_until_the_network_changes() -> None:
    choice = CandidateSelector([LAN, MESH])
    choice.start(0.0)
    choice.answered(LAN, 0.0)
    assert choice.start(59.9) == [Chosen(LAN)]
    assert choice.start(60.0) == [Probe(LAN)]
    choice = CandidateSelector([LAN, MESH])
    choice.start(0.0)
    choice.answered(LAN, 0.0)
    assert choice.network_changed(1.0) == [Probe(LAN)]
    assert choice.network_changed(2.0) == [CancelProbe(LAN), Probe(LAN)]
    assert choice.chosen is None
    assert CandidateSelector([]).start(0.0) == [Chosen(None)]


@given(st.permutations([LAN, LAN2, MESH, PUBLIC]), st.sets(st.sampled_from([LAN, LAN2, MESH, PUBLIC])))
def test_best_answering_tier_is_selected(order: list[Candidate], alive: set[Candidate]) -> None:
    choice = CandidateSelector(order)
    todo: list[SelectionAction] = choice.start(0.0)
    while todo:
        action = todo.pop(0)
        if isinstance(action, Probe) and choice.chosen is None:
            probed = action.candidate
            todo += choice.answered(probed, 0.0) if probed in alive else choice.failed(probed, 0.0)
    best = min((each.priority for each in alive), default=None)
    assert (None if choice.chosen is None else choice.chosen.priority) == best
