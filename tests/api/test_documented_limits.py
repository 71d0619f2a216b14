"""Limits of this room that documents name, as the numbers that stand there: one compared with itself is not tested."""

from __future__ import annotations

import pytest

from tests.documented import value_of

LIMITS = {
    # wire api 2.1, 2.3, 2.5
    "service.BODY_LIMIT": 10_000_000,
    "content.MAX_TEXT": 65_536,
    "content.MAX_PARTS": 1_000,
    "idempotency.KEEP": 300.0,
    "idempotency.MAX_KEYS": 1_000,
    "titles.MAX_ID": 256,
    # wire api 3.1, 3.2, 3.8
    "titles.MAX_TITLE": 100,
    "routes.sessions.DEFAULT_PAGE": 50,
    "routes.sessions.MAX_PAGE": 200,
    "routes.sessions.DEFAULT_HITS": 20,
    "routes.sessions.MAX_HITS": 100,
    # wire api 4.2, 6.3, 7, ARCHITECTURE decision 16
    "subscriber.KEEPALIVE_EVERY": 30.0,
    "subscriber.UNREAD_FOR": 300.0,
    "subscriber.MAX_BEHIND": 64 * 1024,
    "subscriber.MAX_EVENTS_BEHIND": 256,
    "routes.runs.RACE": 1.0,
    "responses.MAX_KEPT": 100,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_the_limits_of_this_room_are_those_of_the_documents(name: str, value: float) -> None:
    assert value_of("api", name) == value
