"""Tests of event loops that are selected by their import names."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.loops import test_bridge, test_client, test_lifecycle, test_media, test_tls_and_ipv6
from tests.loops.conftest import open_world
from tests.loops.environment import Environment
from tests.servers import test_all_servers, test_relay

pytestmark = pytest.mark.full  # starts whole programs

OUTSIDE = "runtimes.loops.threads_loop:run"  # one of our loops, loaded as an external one
HOSTS = [f"tests.support.host_program:{name}" for name in ("in_asyncio", "in_uvloop", "in_trio")]
LOOPS = [OUTSIDE, *HOSTS]
STORIES = (
    partial(test_client.test_requests_and_a_websocket_to_our_own_relay, secure=False),
    test_lifecycle.test_a_session_survives_a_kill,
    test_tls_and_ipv6.test_the_reference_phone_over_tls,
)
STORIES_OF_A_RELAY = (  # which the test starts
    test_bridge.test_the_reference_phone_answers,
    test_lifecycle.test_a_stop_answers_requests_under_way_and_closes_sockets_with_1001,
    test_media.test_json_upload_clipboard_and_notifications,
)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("story", [*STORIES, *STORIES_OF_A_RELAY])
def test_a_story(
    story: Callable[[Environment], None], loop: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with open_world(loop, tmp_path, request) as world:
        if story in STORIES_OF_A_RELAY:
            world.start_relay()
        story(world)


@pytest.mark.parametrize("story", [test_relay.test_serve_and_stop, test_all_servers.test_relay_and_api_in_one_process])
def test_a_program(story: Callable[[str, Path], None], tmp_path: Path) -> None:
    story(OUTSIDE, tmp_path)
