import json

import pytest

from svc_proto.basics.brand import HERMES, SVC
from svc_proto.cli.errors import CliError
from svc_proto.cli.invites import parse_candidates, parse_desktop_invite
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.machines.pairing_payload import pairing_url

ENDPOINTS = [
    {"role": "lan", "priority": 0, "api": {"host": "h", "port": 1, "tls": False}, "relay": {"url": "ws://192.0.2.10"}},
    {"role": "Custom", "priority": 1, "relay": {"url": "wss://box.example", "transport_hint": "wss"}},
]
RELAY = {"url": "ws://192.0.2.10:8767", "code": "q7m2zk"}
PAYLOAD = {"svc": 3, "host": "192.0.2.10", "port": 8642, "key": "s3cret", "relay": RELAY, "endpoints": ENDPOINTS}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PAYLOAD),
        pairing_url(SVC, json.dumps(PAYLOAD)),
        "\x1b[200~ look: " + pairing_url(HERMES, json.dumps(PAYLOAD)) + " \x1b[201~\n",
        pairing_url(SVC, json.dumps(PAYLOAD)).partition("=")[2],
    ],
)
def test_every_form(text: str) -> None:
    found = parse_desktop_invite(text)
    assert found.code == "Q7M2ZK"
    lan = Candidate("lan", 0, "ws://192.0.2.10:8767")
    assert found.candidates == (lan, Candidate("Custom", 1, "wss://box.example"))
    custom = {"role": "Custom", "priority": 1, "relay": {"url": "wss://box.example", "transportHint": "wss"}}
    assert found.stored == (ENDPOINTS[0], custom)
    assert found.apis == {"ws://192.0.2.10:8767": "http://h:1", "wss://box.example": "http://192.0.2.10:8642"}
    assert found.api_key == "s3cret"
    assert "Q7M2ZK" not in repr(found)
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("changes", "apis", "key"),
    [
        ({"tls": True, "host": "::1"}, {"ws://192.0.2.10:8767": "https://[::1]:8642"}, "s3cret"),
        ({"key": "", "port": "8642"}, {}, ""),
        ({"key": "a b", "port": True}, {}, ""),
        ({"key": 7, "host": "u@h"}, {}, ""),
    ],
)
def test_the_api_of_an_invite(changes: dict[str, object], apis: dict[str, str], key: str) -> None:
    found = parse_desktop_invite(json.dumps({**PAYLOAD, "endpoints": None, **changes}))
    assert (found.apis, found.api_key) == (apis, key)


def test_an_invite_without_any_api() -> None:
    found = parse_desktop_invite(json.dumps({**PAYLOAD, "host": None, "endpoints": ENDPOINTS[1:]}))
    assert found.apis == {}


@pytest.mark.parametrize(
    ("host", "role"), [("192.0.2.10", "lan"), ("100.64.0.7", "tailscale"), ("box.x.ts.net", "tailscale"), (None, "lan")]
)
def test_without_endpoints(host: object, role: str) -> None:
    found = parse_desktop_invite(json.dumps({**PAYLOAD, "host": host, "endpoints": None}))
    assert found.candidates == (Candidate(role, 0, "ws://192.0.2.10:8767"),)
    assert found.stored == ()


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ({"svc": 1}, "leads to no relay"),
        *(({"relay": relay}, "leads to no relay") for relay in ("x", {"url": "ws://h"}, {"url": 7, "code": "Q7M2ZK"})),
        ({"relay": {"url": "ws://h", "code": "Q7M2Z"}}, "no usable pairing code"),
        ({"relay": {"url": "http://h", "code": "Q7M2ZK"}}, "the relay's address in --pair-qr must begin"),
    ],
)
def test_unusable_invites(payload: dict[str, object], says: str) -> None:
    with pytest.raises(CliError, match=says) as caught:
        parse_desktop_invite(json.dumps(payload))
    assert caught.value.code == 2


@pytest.mark.parametrize("text", ["", "xyz", "{", "svc-relay://pair", "[]"])
def test_no_invites(text: str) -> None:
    with pytest.raises(CliError, match="--pair-qr is no invite") as caught:
        parse_desktop_invite(text)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "endpoint",
    [
        *(7, {}, {"role": "", "relay": {"url": "ws://h"}}),
        *({"role": "lan", "priority": priority, "relay": {"url": "ws://h"}} for priority in ("0", True)),
        *({"role": "lan", "relay": relay} for relay in (None, {"url": 7}, {"url": "http://h"}, {"url": "::"})),
    ],
)
def test_bad_candidates_are_omitted(endpoint: object) -> None:
    assert parse_candidates([endpoint], "transport_hint") == []


def test_candidates_are_limited() -> None:
    assert len(parse_candidates([ENDPOINTS[0]] * 40, "transport_hint")) == 16
