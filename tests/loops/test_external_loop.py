"""Tests of event loops that are selected by their import names."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.loops import test_bridge, test_client, test_lifecycle, test_media, test_tls_and_ipv6
from tests.loops.conftest import open_world
from tests.loops.environment import Environment
from tests.loops.live_environment import ROOT
from tests.servers import test_all_servers, test_relay

pytestmark = pytest.mark.full  # starts whole programs

OUTSIDE = "runtimes.loops.threads_loop:run"  # one of our loops, loaded as an external one
HOSTS = [f"tests.support.host_program:{name}" for name in ("in_asyncio", "in_uvloop", "in_trio")]
LOOPS = [OUTSIDE, *HOSTS]


def collected(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `pytest --collect-only` with arguments, and return its result."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


# --- stories --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "story",
    [
        partial(test_client.test_requests_and_a_websocket_to_our_own_relay, secure=False),
        test_lifecycle.test_a_session_survives_a_kill,
        test_tls_and_ipv6.test_the_reference_phone_over_tls,
    ],
)
def test_a_story(
    story: Callable[[Environment], None], loop: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with open_world(loop, tmp_path, request) as world:
        story(world)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "story",
    [
        test_bridge.test_the_reference_phone_answers,
        test_lifecycle.test_a_stop_answers_requests_under_way_and_closes_sockets_with_1001,
        test_media.test_json_upload_clipboard_and_notifications,
    ],
)
def test_a_story_of_a_relay(
    story: Callable[[Environment], None], loop: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with open_world(loop, tmp_path, request) as world:
        world.start_relay()
        story(world)


@pytest.mark.parametrize("story", [test_relay.test_serve_and_stop, test_all_servers.test_relay_and_api_in_one_process])
def test_a_program(story: Callable[[str, Path], None], tmp_path: Path) -> None:
    story(OUTSIDE, tmp_path)


# --- the option -----------------------------------------------------------------------------------------------------


def test_loops_are_chosen() -> None:
    chosen = collected(
        "tests/loops/test_lifecycle.py", "tests/runtimes/net/test_stdio_channel.py", "--loop", OUTSIDE, "--loop", "sim"
    )
    names = [line.rpartition("::")[2] for line in chosen.stdout.splitlines() if "::" in line]
    assert "test_a_session_survives_a_kill[sim]" in names
    assert f"test_a_session_survives_a_kill[{OUTSIDE}]" in names
    assert f"test_a_reader_that_is_slow[{OUTSIDE}]" in names
    assert "test_a_reader_that_is_slow[sim]" not in names  # the simulator has no pipes
    assert "[asyncio]" not in chosen.stdout


def test_an_unknown_loop_is_refused() -> None:
    refused = collected("--loop", "twisted")
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --loop: no runtime 'twisted': choose one of anyio, " in refused.stderr
