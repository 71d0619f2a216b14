from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.basics.certificate_pins import PIN_CHANGED
from svc_proto.cli.desktop_connection import (
    CredentialRefusedError,
    DesktopIdentity,
    RelayUnreachableError,
    connect_desktop,
)
from svc_proto.cli.errors import CliError
from svc_proto.engine.http_client import HttpResult
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Headers
from tests.cli.harness import REFUSED, OneShotHarness, as_json

ME = DesktopIdentity(name="Desk", hostname="desk", device_id="d")
CODE, TOKEN = {"pairing_code": "Q7M2ZK"}, {"session_token": "t"}
NEW_CODE = "make a new code with svc pair on its host"
NO_SESSION = "ws://h:8767 sent no usable session: is it really a relay?"
NO_ANSWER = "ws://h:8767 does not answer: no reply to sign-in in 15 s"


def signing_in(answer: object = (), credentials: Mapping[str, object] = CODE, **more: Any) -> OneShotHarness[Any]:
    """Return a harness of a connection to a relay that answers each message with `answer`, or disconnects for None."""
    said = answer if answer is None else [{"channel": "system", "id": "1", **each} for each in answer]  # type: ignore[attr-defined]
    opening = lambda engine: connect_desktop(engine, "ws://h:8767", credentials, ME)  # noqa: E731
    return OneShotHarness(opening, **{"socket": lambda message: said, **more})


def refused(reason: object) -> object:
    return [{"type": "auth.fail", "payload": {"reason": reason}}]


def test_registration_payload() -> None:
    there = signing_in([{"type": "auth.ok", "payload": {"session_token": "t0ken"}}])
    assert there.run()[1].token == "t0ken"
    (said,) = there.said
    names = {"device_name": "Desk", "device_hostname": "desk", "device_id": "d", "device_platform": "unknown"}
    kinds = {"client_surface": "desktop", "device_form_factor": "desktop"}
    assert said["payload"] == {"pairing_code": "Q7M2ZK", **names, **kinds, "supports": {}}


@pytest.mark.parametrize(
    ("answer", "credentials", "kind", "says"),
    [
        (refused("no\x1b[2J good"), CODE, CredentialRefusedError, f"the relay refuses: no [2J good; {NEW_CODE}"),
        (refused(""), TOKEN, CredentialRefusedError, "the relay refuses: no reason given; pair again: svc-relay pair"),
        ([{"type": "auth.ok", "payload": {}}], CODE, CliError, NO_SESSION),
        (None, CODE, RelayUnreachableError, "ws://h:8767 closed the connection before it let us in: reset"),
        ((), CODE, RelayUnreachableError, NO_ANSWER),
    ],
)
def test_refused_authentication(
    answer: object, credentials: Mapping[str, object], kind: type[CliError], says: str
) -> None:
    problem = signing_in(answer, credentials).advance().error
    assert (type(problem), str(problem)) == (kind, says)


@pytest.mark.parametrize(
    ("failure", "kind", "says"),
    [
        (REFUSED, RelayUnreachableError, "the relay at ws://h:8767 cannot be reached: connection refused"),
        (Failure(FailureKind.UNREACHABLE), RelayUnreachableError, "is it running, and this its address? With TLS"),
        (Failure(FailureKind.TLS, "TLS: BAD"), CliError, "cannot be trusted: TLS: BAD"),
        (Failure(FailureKind.TLS, PIN_CHANGED), CliError, "shows another certificate"),
    ],
)
def test_unreachable_relay(failure: Failure, kind: type[CliError], says: str) -> None:
    problem = signing_in(dial=lambda host, port: failure).advance().error
    assert type(problem) is kind
    assert says in str(problem)


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (429, CliError, "the relay takes no further one for 5 minutes, or until svc pair makes a new one on its host"),
        (503, RelayUnreachableError, "ws://h:8767 does not open a WebSocket: busy (status 503)"),
        (500, RelayUnreachableError, "ws://h:8767 does not open a WebSocket: busy (status 500)"),
        (499, CliError, "ws://h:8767 does not open a WebSocket: busy (status 499); is it really a relay?"),
        (404, CliError, "ws://h:8767 does not open a WebSocket: busy (status 404); is it really a relay?"),
    ],
)
def test_no_websocket(status: int, kind: type[CliError], says: str) -> None:
    there = signing_in(http=as_json({"error": "busy"}, status), socket=None)
    problem = there.advance().error
    assert type(problem) is kind
    assert str(problem).endswith(says)
    assert [asked.path for asked in there.asked] == ["/ws"]


@pytest.mark.parametrize(
    ("after", "pause"), [(b"287", "287 s"), (b"999999", "999999 s"), (b"1000000", "5 minutes"), (b"soon", "5 minutes")]
)
def test_remaining_block_time(after: bytes, pause: str) -> None:
    from svc_proto.cli.desktop_connection import _declined

    problem = _declined("ws://h", HttpResult(429, Headers([(b"retry-after", after)]), b""))
    assert f"no further one for {pause}, or until svc pair makes a new one" in str(problem)
