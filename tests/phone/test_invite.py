import json
from typing import Any

import pytest

from svc_proto.basics.brand import BRANDS, Brand
from svc_proto.basics.errors import Refused
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.machines.pairing_payload import pairing_url
from svc_proto.phone.invite import Invite, parse_phone_invite
from svc_proto.phone.preferences import Preferences

CAREFUL, PLAIN = Preferences(), Preferences(allow_plain=True)
RELAY = {"url": "wss://box.example:8767", "code": "Q7M2ZK"}
LAN, MESH = "ws://192.0.2.10:8767", "wss://box.mesh.example:8767"


def payload(**more: Any) -> str:
    members = {"svc": 3, "host": "h", "port": 8642, "key": "", "tls": False, "relay": RELAY}
    return json.dumps({**members, **more})


def candidate(url: object, role: object = "lan", **more: object) -> dict[str, object]:
    return {"role": role, "relay": {"url": url}, "api": {"host": "h", "port": 8642}, **more}


def test_routes_by_priority() -> None:
    assert parse_phone_invite(payload(), CAREFUL) == Invite(remote=RELAY["url"], code="Q7M2ZK", routes=())
    endpoints = [candidate(MESH, "Mesh", priority=2), candidate(LAN, priority=1), candidate(RELAY["url"], "public")]
    invite = parse_phone_invite(payload(endpoints=endpoints), PLAIN)
    assert invite.routes == (Candidate("public", 0, RELAY["url"]), Candidate("lan", 1, LAN), Candidate("Mesh", 2, MESH))
    assert invite.remote == RELAY["url"]


@pytest.mark.parametrize("brand", BRANDS.values())
def test_the_url_form(brand: Brand) -> None:
    assert parse_phone_invite(pairing_url(brand, payload()), CAREFUL).code == "Q7M2ZK"


def test_plain_routes_need_consent() -> None:
    endpoints = [candidate(LAN), candidate(MESH, "mesh", priority=1)]
    assert parse_phone_invite(payload(endpoints=endpoints), CAREFUL).routes == (Candidate("mesh", 1, MESH),)
    for text in (payload(endpoints=[candidate(LAN)]), payload(relay={"url": LAN, "code": "Q7M2ZK"})):
        with pytest.raises(Refused) as caught:
            parse_phone_invite(text, CAREFUL)
        assert (caught.value.status, caught.value.code) == (400, "plain_route")
        assert parse_phone_invite(text, PLAIN).remote == LAN


def test_malformed_repeated_and_further_candidates_are_omitted() -> None:
    endpoints = [5, candidate("wss://u:p@h"), candidate(MESH, priority=True), candidate(MESH), candidate(MESH)]
    assert parse_phone_invite(payload(endpoints=endpoints), CAREFUL).routes == (Candidate("lan", 0, MESH),)
    endpoints = [candidate(f"wss://h{number}") for number in range(70)]
    assert len(parse_phone_invite(payload(endpoints=endpoints), CAREFUL).routes) == 64


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        payload(relay=None),
        payload(relay={"url": MESH}),
        payload(relay={"url": MESH, "code": ""}),
        payload(relay={"url": "http://h", "code": "Q7M2ZK"}),
        payload(relay={"code": "Q7M2ZK"}),
    ],
)
def test_no_invite(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_phone_invite(text, CAREFUL)
    assert caught.value.code == "invalid_invite"
