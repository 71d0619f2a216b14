import json
from typing import Any

import pytest

from svc_proto.machines.compact_invites import compact_payloads, payload_key
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_payload import parse_invite

LAN = {
    "role": "lan", "priority": 0, "api": {"host": "192.168.1.20", "port": 8642, "tls": False},
    "relay": {"url": "ws://192.168.1.20:8767", "transport_hint": "ws"},
}  # fmt: skip
PUBLIC = {
    "role": "public", "priority": 1, "api": {"host": "home.example", "port": 443, "tls": True},
    "relay": {"url": "wss://home.example/relay", "transport_hint": "wss"},
}  # fmt: skip
RELAY = {"url": "ws://192.168.1.20:8767", "code": "Q7M2ZK"}
FULL: dict[str, Any] = {
    "svc": 3, "host": "192.168.1.20", "port": 8642, "key": "sk-0123456789abcdef0123456789abcdef", "tls": False,
    "relay": RELAY, "endpoints": [LAN], "sig": "c2ln",
}  # fmt: skip
ALONE = {"host": "192.168.1.20", "key": FULL["key"], "relay": RELAY}


def forms(payload: dict[str, Any]) -> list[dict[str, Any]]:
    texts = compact_payloads(json.dumps(payload, separators=(",", ":")))
    assert sorted(map(len, texts), reverse=True) == [len(text) for text in texts]
    return [dict(parse_invite(text)) for text in texts]


def test_forms_of_an_invite() -> None:
    assert forms(FULL) == [FULL, {"svc": 1, **ALONE}, ALONE]
    full, short, *rest = forms({**FULL, "endpoints": [LAN, PUBLIC], "hermes": 3})
    assert short["endpoints"] == [
        {
            "role": "lan",
            "priority": 0,
            "api": {"host": "192.168.1.20", "port": 8642},
            "relay": {"url": "ws://192.168.1.20:8767"},
        },
        {**PUBLIC, "relay": {"url": "wss://home.example/relay"}},
    ]
    assert full["sig"] == "c2ln"
    assert "sig" not in short
    assert rest == [{"hermes": 1, **ALONE}, ALONE]
    relay = {**RELAY, "ttl_seconds": 60}
    assert forms({**FULL, "relay": relay, "tls": True, "port": 9}) == [
        {**FULL, "relay": relay, "tls": True, "port": 9},
        {"svc": 2, "host": "192.168.1.20", "port": 9, "key": FULL["key"], "tls": True, "relay": relay},
    ]
    plain = {name: FULL[name] for name in ("svc", "host", "port", "key", "tls")}
    assert forms({**plain, "svc": 1}) == [
        {**plain, "svc": 1},
        {"svc": 1, "host": "192.168.1.20", "key": FULL["key"]},
        {"host": "192.168.1.20", "key": FULL["key"]},
    ]


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"host": 5}'])
def test_any_other_text_stays_alone(text: str) -> None:
    assert compact_payloads(text) == [text]


@pytest.mark.parametrize("address", ["192.168.100.200", "10.0.0.7"])
def test_the_shortest_form_fits_the_bytes_of_a_small_code(address: str) -> None:
    payload = {**FULL, "host": address, "relay": {**RELAY, "url": f"ws://{address}:8767"}, "endpoints": [LAN, PUBLIC]}
    assert len(compact_payloads(json.dumps(payload))[-1]) <= 134


def test_a_public_name_of_23_characters_fits_a_terminal_of_24_lines() -> None:
    name, key = "my-own-name.duckdns.org", PairingApiKeys().new_key(bytes)[0]
    payload = {**FULL, "host": name, "port": 443, "tls": True, "key": key, "endpoints": [PUBLIC]}
    payload["relay"] = {**RELAY, "url": f"wss://{name}"}
    assert len(name) == 23
    assert len(compact_payloads(json.dumps(payload))[-1]) <= 154


def test_the_key_of_a_payload() -> None:
    assert payload_key(json.dumps(FULL)) == FULL["key"]
    assert payload_key("x") == ""
