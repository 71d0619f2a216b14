"""Tests of transition coverage: counted rows, names of tables, the report, and the list of unreachable rows."""

import subprocess
import sys

from fuzz.simulation import transition_coverage
from tests.fuzz.unreached_transitions import OUT_OF_REACH, is_out_of_reach

PROGRAM = """
from fuzz.simulation import transition_coverage
from svc_proto.machines import paired_session, paired_session_registry
from svc_proto.machines.paired_session import SessionState, SessionTrigger
from svc_proto.machines.transitions import step
transition_coverage.start_counting()
table = paired_session_registry.SESSION_TABLE
transition_coverage.start_counting()
assert table is paired_session.SESSION_TABLE is paired_session_registry.SESSION_TABLE
for _ in range(2):
    step(paired_session.SESSION_TABLE, SessionState.ACTIVE, SessionTrigger.REVOKE)
print(transition_coverage.drain_counts(), transition_coverage.drain_counts())
"""


def test_counting_process_counts_used_rows() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "{'machines.paired_session.SESSION_TABLE: ACTIVE, REVOKE': 2} {}\n"


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
