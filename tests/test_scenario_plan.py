"""The plan names the loops of each test in tests/loops; the short suite and the rest make up the full suite."""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scenario_plan import NODES, PLAN, ScenarioEnvironments, nodes_row_of, row_of

TESTS = Path(__file__).parent
LOOPS = TESTS / "loops"
MARKED = "tests/loops/test_slow_clients.py"  # with tests for the full suite only
WORLDS = "tests/fuzz/test_simulation.py"  # with tests for the short suite in a folder that it leaves out
REDIS = "tests/runtimes/test_redis_real.py"  # with a test that needs a Redis
HTTP, SERVERS = "tests/loops/test_http.py", "tests/servers/test_options.py"
SAMPLE = (MARKED, WORLDS, REDIS, HTTP, SERVERS)
STORY = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)
STORIES = [(path.stem, name) for path in sorted(LOOPS.glob("test_*.py")) for name in STORY.findall(path.read_text())]
# on no loop
ELSEWHERE = {"test_session_events", "test_api_kill", "test_external_loop"}


ROWS = {story: row_of(*story) for story in STORIES}


def test_each_story_has_a_row() -> None:
    assert {module for (module, _), row in ROWS.items() if row is None} == ELSEWHERE


def test_each_row_matches_a_new_story() -> None:
    taken = [row for row in ROWS.values() if row is not None]
    assert [row.stories for row in PLAN if row not in taken] == []


def test_a_row_of_a_story_overrides_its_module() -> None:
    near, far = row_of("test_http", "test_200_connections_at_once"), row_of("test_voice_agent", "test_health_of_others")
    assert near is not None
    assert far is not None
    assert (near.how, far.how) == (ScenarioEnvironments.ALL, ScenarioEnvironments.SIM)
    assert row_of("test_nothing", "test_x") is None


def test_each_row_of_nodes_matches_a_new_story() -> None:
    taken = [nodes_row_of(*story) for story in STORIES]
    assert [row.stories for row in NODES if row not in taken] == []


def test_each_name_matches_a_story() -> None:
    names = {name for module, test in STORIES for name in (module, f"{module}::{test}")}
    planned = [row.stories for row in PLAN] + [row.stories for row in NODES]
    assert [story for stories in planned for story in stories if not fnmatch.filter(names, story)] == []


def collect(*arguments: str) -> list[str]:
    """Return the ids of the tests that pytest selects."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *arguments]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, timeout=50, check=False)
    return [line for line in done.stdout.splitlines() if "::" in line]


def ignoring_the_others() -> list[str]:
    """Return the options by which pytest ignores all test files but those of `SAMPLE`."""
    kept = {TESTS.parent / path for path in SAMPLE}
    folders = [path for path in TESTS.iterdir() if path.is_dir() and path not in {each.parent for each in kept}]
    files = [path for folder in {each.parent for each in kept} | {TESTS} for path in folder.glob("test_*.py")]
    inner = [path.parent for folder in ("runtimes",) for path in (TESTS / folder).glob("*/__init__.py")]
    return [f"--ignore={path}" for path in (*folders, *files, *inner) if path not in kept]


@pytest.mark.full
def test_the_short_suite_and_the_rest_are_the_full_suite() -> None:
    alone = ignoring_the_others()
    short, rest, full = collect(*alone), collect(*alone, "--rest"), collect(*alone, "--full")
    assert len(short) > 25
    assert sorted(short + rest) == sorted(full)
    assert {test.partition("::")[0] for test in full} == set(SAMPLE)
    assert {test.partition("::")[0] for test in short} == set(SAMPLE) - {SERVERS}
    assert not [test for test in short if "as_the_real_one" in test]
    assert not [test for test in short if re.search(r"uvloop|trio|curio|threads|nodes", test.partition("[")[2])]


@pytest.mark.full
def test_a_file_that_is_named_runs_whole() -> None:
    assert len(collect(SERVERS)) > 5
    assert len(collect(MARKED)) == 2
