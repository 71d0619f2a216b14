"""The life of a spoken turn: the table is its document's."""

from __future__ import annotations

import re

from svc_proto.machines import voice_job, voice_turn
from svc_proto.machines.voice_job import JOB_TABLE, JobState, JobTrigger
from svc_proto.machines.voice_turn import TURN_TABLE, TurnState, TurnTrigger
from tests.machines.lifecycles import check_table

ROW = re.compile(r"^\| (\w+) +\| ([A-Z]+) +\| (\w+)", re.MULTILINE)


def test_the_table_of_turns_is_the_documents() -> None:
    rows = [(state, (TurnTrigger[word],), after) for state, word, after in ROW.findall(voice_turn.__doc__ or "")]
    check_table(TURN_TABLE, TurnState, TurnTrigger, rows)


def test_the_table_of_jobs_is_the_documents() -> None:
    rows = [(state, (JobTrigger[word],), after) for state, word, after in ROW.findall(voice_job.__doc__ or "")]
    check_table(JOB_TABLE, JobState, JobTrigger, rows)
