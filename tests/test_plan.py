"""The plan of stories and loops: it names what is there, and all of it."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

from tests.plan import NODES, PLAN, Where, nodes_row_of, row_of

LOOPS = Path(__file__).parent / "loops"
STORY = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)
STORIES = [(path.stem, name) for path in sorted(LOOPS.glob("test_*.py")) for name in STORY.findall(path.read_text())]
ELSEWHERE = {
    "test_session_events",
    "test_api_kill",
    "test_api_storm",
    "test_storm",
    "test_programs",
    "test_outside_loop",
}  # on no loop


ROWS = {story: row_of(*story) for story in STORIES}


def test_each_story_has_a_row() -> None:
    assert {module for (module, _), row in ROWS.items() if row is None} == ELSEWHERE


def test_each_row_fits_a_story_that_no_row_above_has_taken() -> None:
    taken = [row for row in ROWS.values() if row is not None]
    assert [row.stories for row in PLAN if row not in taken] == []


def test_a_story_of_its_own_wins_over_its_module() -> None:
    near, far = row_of("test_http", "test_200_connections_at_once"), row_of("test_http", "test_health_of_others")
    assert near is not None
    assert far is not None
    assert (near.how, far.how) == (Where.ALL, Where.SIM)
    assert row_of("test_nothing", "test_x") is None


def test_each_row_of_nodes_fits_a_story_that_no_row_above_has_taken() -> None:
    taken = [nodes_row_of(*story) for story in STORIES]
    assert [row.stories for row in NODES if row not in taken] == []


def test_each_name_is_one_of_a_story() -> None:
    names = {name for module, test in STORIES for name in (module, f"{module}::{test}")}
    planned = [row.stories for row in PLAN] + [row.stories for row in NODES]
    assert [story for stories in planned for story in stories if not fnmatch.filter(names, story)] == []
