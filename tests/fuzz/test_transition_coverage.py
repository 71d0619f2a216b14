"""Tests of transition coverage: the names of tables, and the list of unreachable rows."""

from fuzz.simulation import transition_coverage
from tests.fuzz.unreached_transitions import OUT_OF_REACH, is_out_of_reach


def test_every_table_of_the_core_is_found_under_the_name_that_it_was_made_with() -> None:
    names = {row.partition(": ")[0] for row in transition_coverage.all_rows()}
    assert {
        "machines.paired_session.SESSION_TABLE",
        "machines.terminal.TERMINAL_TABLE",
        "wire.http1_read_state.READ_TABLE",
    } <= names
    assert (
        not {"machines.paired_session_registry.SESSION_TABLE", "relay.terminals.terminal_channel.TERMINAL_TABLE"}
        & names
    )
    assert len(transition_coverage.all_rows()) == len(set(transition_coverage.all_rows())) > 250


def test_unreachable_rows_exist_and_have_a_reason() -> None:
    there = transition_coverage.all_rows()
    for row, reason in OUT_OF_REACH.items():
        assert any(each.startswith(row) for each in there), row
        assert len(reason.split()) > 3
    assert is_out_of_reach("cli.voice_chat.VOICE_CHAT_TABLE: IDLE, RECORD")
    assert not is_out_of_reach("machines.media_registry.MEDIA_TABLE: REGISTERED, EVICT")
