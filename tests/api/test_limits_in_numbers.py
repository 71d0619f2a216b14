"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # wire api 2.1, 2.3, 2.5
    "service.BODY_LIMIT": 10_000_000,
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
    # wire api 4.2, 6.3, 7, decision 16
    "subscriber.KEEPALIVE_EVERY": 30.0,
    "subscriber.UNREAD_FOR": 300.0,
    "subscriber.MAX_BEHIND": 64 * 1024,
    "subscriber.MAX_EVENTS_BEHIND": 256,
    "routes.runs.RACE": 1.0,
    "responses.MAX_KEPT": 100,
    # its own, which other tests call by name
    "content.MAX_MESSAGES": 10_000,
    "history.MAX_IMAGES": 8 * 1024 * 1024,
    "history.MAX_TEXT": 400_000,
    "responses.MAX_TEXT": 4 * 1024 * 1024,
    # its own, of which no other test knows the number
    "answers.STATUSES": {"session_not_found": 404, "session_db_unavailable": 503, "gateway_draining": 503},
    "config.MAX_MODEL_CALLS": 1_000,
    "config.MAX_RUNS": 10_000,
    "config.MAX_TOKENS": 10_000_000,
    "errors.MOST_SHOWN": 80,
    "history.MAX_ROWS": 1_000,
    "routes.responses.TRUNCATED": 100,
    "projections.session.MAX_ECHO": 131_072,
    "run.PATIENCE": 60.0,
    "subscriber.NOBODY": 0,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("api", name) == value
