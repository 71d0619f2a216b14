from typing import Any

import pytest

from svc_proto.agent.interface import ModelEndpoint, TextDelta, TurnNotice, TurnOutcome
from svc_proto.agent.model_client import DEFAULT_MODEL_LIMITS, ModelCallLimits
from tests.agent.harness import KEY, ROUTE, AgentHarness
from tests.support.servers.model_server import DONE, ModelAnswer, calls, chunk, event, plain, refusal, usage

HELLO = plain("Hello there")
SOURCE = "SVC_MODEL_BASE_URL in .env"
REFUSED = "refused the request"
REDIRECTS = "redirects, which is not followed since a key would go along"


def failing(*answers: ModelAnswer, route: ModelEndpoint = ROUTE, **config: Any) -> tuple[AgentHarness, TurnOutcome]:
    world = AgentHarness(model=answers, **config)
    outcome = world.answer("Hi", model=route)
    assert outcome.finish == "error"
    assert KEY not in str(outcome)
    return world, outcome


# --- refusals before the first word -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(401, "bad key"), "does not accept the key (SVC_MODEL_API_KEY): 401, bad key"),
        (refusal(403, ""), "does not accept the key (SVC_MODEL_API_KEY): 403"),
        (refusal(404), "knows no such model or path (SVC_MODEL, SVC_MODEL_BASE_URL): 404, no"),
        (refusal(400, f"the key {KEY} is odd"), f"{REFUSED}: 400, the key [redacted] is odd"),
        (refusal(400, "x" * 300), f"{REFUSED}: 400, {'x' * 200}…"),
        (ModelAnswer(status=422, body=b'{"detail": "wrong"}'), f"{REFUSED}: 422, wrong"),
        (ModelAnswer(status=400, body=b"<html>"), f"{REFUSED}: 400"),
        (ModelAnswer(status=307, headers=((b"location", b"http://other/"),)), f"{REDIRECTS}: 307"),
        *((ModelAnswer(status=status), f"{REDIRECTS}: {status}") for status in (300, 399)),
        (ModelAnswer(status=499), f"{REFUSED}: 499"),
        (ModelAnswer(body=b"hello"), "sent neither an event stream nor JSON; is the base URL right?"),
        (ModelAnswer(body=b'{"ok": true}'), "sent JSON without an answer; is the base URL right?"),
    ],
)
def test_a_refusal(answer: ModelAnswer, error: str) -> None:
    world, outcome = failing(answer)
    (log,) = [fields for name, fields in world.logs if name == "model failed"]
    assert log["status"] == (None if answer.status == 200 else answer.status)
    error = f"the model's server {error}"
    assert error.startswith(str(log["why"]))
    assert str(log["url"]).startswith("http")
    assert outcome == TurnOutcome(finish="error", error=error, code="upstream_error")
    assert len(world.model.seen) == 1
    assert world.host.event_names == ["asked"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_temporary_errors_are_retried(status: int) -> None:
    world = AgentHarness(model=[refusal(status), refusal(status), HELLO])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.text == "Hello there"
    assert world.host.event_names == ["asked", "text", "answered"]
    pauses: list[Any] = [fields["seconds"] for name, fields in world.logs if name == "model request retried"]
    assert 0.5 <= pauses[0] <= 1.0
    assert 1.0 <= pauses[1] <= 2.0


def test_retries_are_limited() -> None:
    world, outcome = failing(*(refusal(503, "busy", retry_after="60") for _ in range(9)))
    assert outcome.error == "the model's server failed: 503, busy"
    assert len(world.model.seen) == DEFAULT_MODEL_LIMITS.attempts


@pytest.mark.parametrize("wanted", ["2", "60", "0000017"])
def test_retry_after_is_respected(wanted: str) -> None:
    world = AgentHarness(model=[refusal(429, retry_after=wanted), HELLO])
    world.answer("Hi")
    notice, first = (
        next(at for at, event in zip(world.host.at, world.host.events, strict=True) if isinstance(event, kind))
        for kind in (TurnNotice, TextDelta)
    )
    assert 0.0 <= first - notice - float(wanted) <= 1.0
    why = "the model's server is asked too often, or its quota is used up"
    assert world.host.reasoning == f"[{why}; the next attempt is in {int(wanted)} s]\n"


@pytest.mark.parametrize(
    ("wanted", "told"),
    [("604800", " (try again in 604800 s)"), ("604801", ""), ("9" * 400, ""), ("61.5", " (try again in 62 s)")],
)
def test_too_long_retry_after_ends_the_call(wanted: str, told: str) -> None:
    world, outcome = failing(refusal(429, retry_after=wanted))
    assert outcome.error == f"the model's server is asked too often, or its quota is used up: 429, no{told}"
    assert len(world.model.seen) == 1


@pytest.mark.parametrize("wanted", ["soon", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_invalid_retry_after_is_ignored(wanted: str) -> None:
    world = AgentHarness(model=[refusal(429, retry_after=wanted), HELLO])
    assert world.answer("Hi") == TurnOutcome()


# --- no connection ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://model:1/v1", f"at http://model:1/v1 ({SOURCE}) cannot be reached"),
        ("http://nowhere:9000/v1?k=s", f"at http://nowhere:9000/v1 ({SOURCE}) cannot be reached"),
        ("ftp://model/v1", "cannot be used: the URL is not one of http, https, ws, wss"),
        ("http://user:pw@model/v1", "cannot be used: the URL has user information"),
        ("https://model:9000/v1", f"at https://model:9000/v1 ({SOURCE}) has no certificate that can be trusted"),
    ],
)
def test_unreachable_server(url: str, error: str) -> None:
    _, outcome = failing(route=ModelEndpoint(base_url=url, model="m", api_key=KEY, source=SOURCE))
    assert outcome == TurnOutcome(finish="error", error=f"the model's server {error}", code="upstream_error")


def test_unprintable_key() -> None:
    world, outcome = failing(route=ModelEndpoint(base_url=ROUTE.base_url, model="m", api_key="a\r\nb: c"))
    assert outcome.error == "the model's API key has characters that no header can carry"
    assert world.model.seen == []


BROKE_OFF = "answer broke off: the connection ended"
FAILED, LATE = "upstream_error", "upstream_timeout"
ENDLESS = ModelAnswer(events=(chunk({"content": "a"}), *(chunk() for _ in range(200))), pause=20.0)
NO_JSON = ModelAnswer(events=(chunk({"content": "a"}), b"data: hello\n\n"))
SLOW = ModelAnswer(body=b"{}", before=50.0)


@pytest.mark.parametrize(
    ("answer", "error", "code", "text", "limits"),
    [
        (HELLO.dropped(2), BROKE_OFF, FAILED, "Hello ", {}),
        (HELLO.dropped(3), BROKE_OFF, FAILED, "Hello there", {}),
        (ModelAnswer(events=(chunk({"content": "Hello"}),)), BROKE_OFF, FAILED, "Hello", {}),
        (NO_JSON, "server failed: it sent an event that is not JSON", FAILED, "a", {}),
        (ModelAnswer(status=200, body=b"x" * 9_000_000), "server sent too much", FAILED, "", {}),
        (ModelAnswer(status=400, body=b"x" * 9_000_000), "server sent too much", FAILED, "", {}),
        (HELLO.stuck(2), "server was silent for 300 s", LATE, "Hello ", {}),
        (HELLO.stuck(1), "server was silent for 300 s", LATE, "", {}),
        (ENDLESS, "answer was not over after 100 s", LATE, "a", {"whole": 100.0}),
        (SLOW, f"server at {ROUTE.base_url} did not answer in time", LATE, "", {"answer": 20.0, "connect": 1.0}),
    ],
)
def test_call_fails_without_retry(
    answer: ModelAnswer, error: str, code: str, text: str, limits: dict[str, Any]
) -> None:
    world, outcome = failing(answer, HELLO, limits=ModelCallLimits(**limits))
    assert outcome == TurnOutcome(finish="error", error=f"the model's {error}", code=code)
    assert (world.host.text, len(world.model.seen)) == (text, 1)


@pytest.mark.parametrize(
    "member", [{"message": f"boom with {KEY}", "code": 500}, f"boom with {KEY}", {"error": f"boom with {KEY}"}]
)
def test_an_error_in_the_middle(member: object) -> None:
    events = (chunk({"content": "Hello"}), event({"error": member}), chunk({"content": "never"}))
    world, outcome = failing(ModelAnswer(events=events))
    assert outcome.error == "the model's server failed: boom with [redacted]"
    assert outcome.code == "upstream_error"
    assert world.host.text == "Hello"
    assert len(world.model.seen) == 1  # emitted text cannot be taken back


def test_failures_before_the_first_text_are_retried() -> None:
    world = AgentHarness(model=[ModelAnswer(events=(event({"error": {"type": "overloaded"}}),)), HELLO])
    assert world.answer("Hi") == TurnOutcome()
    world = AgentHarness(model=[HELLO.dropped(1), HELLO.dropped(0), HELLO])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.text == "Hello there"


def test_the_end_of_an_answer_is_enough() -> None:
    for answer in (HELLO.dropped(4), HELLO.stuck(4), ModelAnswer(events=(HELLO.events or ())[:5])):
        world = AgentHarness(model=[answer])
        assert world.answer("Hi") == TurnOutcome()
        assert world.host.at[-1] - world.host.at[0] < 10.0
    events = (chunk({"content": "Hi"}), usage(1, 1), DONE + chunk({"content": "never"}))
    world = AgentHarness(model=[ModelAnswer(events=events)])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.text == "Hi"


def test_comments_keep_a_slow_model_alive() -> None:
    events = (chunk({"content": "a"}), *(b": wait\n\n" for _ in range(4)), chunk({"content": "b"}, "stop"), DONE)
    world = AgentHarness(model=[ModelAnswer(events=events, pause=200.0)])
    assert world.answer("Hi") == TurnOutcome()
    assert world.host.text == "ab"


def test_the_second_round_fails() -> None:
    world = AgentHarness(model=[calls(("skills_list", {}), text="Look."), *(refusal(500) for _ in range(4))])
    outcome = world.answer("Hi")
    assert outcome.error == "the model's server failed: 500, no"
    assert world.host.text == "Look."
