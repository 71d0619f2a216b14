"""The invite of `POST /pairing/mint`, its signature and its API key (wire core 2.6, 2.7, 3)."""

import base64
import json
from typing import Any

import pytest

from svc_proto.basics.brand import HERMES
from svc_proto.commands import Compute, EnsureSecret, Level
from svc_proto.machines.pairing_payload import verify_payload
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import SECRET, RelayHarness

HOME = "/home/svc"
CONFIG_PATH = f"{HOME}/config.yaml"
CONFIG = RelayConfig(home=HOME, config_path=CONFIG_PATH)


def config(**settings: Any) -> RelayConfig:
    return RelayConfig(**{"home": HOME, "config_path": CONFIG_PATH, **settings})


def mint(body: object = None, book: RelayHarness | None = None) -> dict[str, Any]:
    answer = (book or RelayHarness(CONFIG)).request("POST", "/pairing/mint", body)
    assert answer.status == 200, answer
    minted: dict[str, Any] = answer.json
    return minted


def payload(minted: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(minted["qr_payload"])
    return read


def test_the_whole_answer() -> None:
    book = RelayHarness(CONFIG)
    minted = mint(None, book)
    code, qr_text = minted["code"], minted["qr_payload"]
    assert qr_text.startswith(
        '{"svc":1,"hermes":1,"host":"192.0.2.10","port":8642,"key":"","tls":false,'
        f'"relay":{{"url":"ws://192.0.2.10:8767","code":"{code}"}},"sig":"'
    )
    assert verify_payload(payload(minted), SECRET)
    bare = base64.urlsafe_b64encode(qr_text.encode()).decode().rstrip("=")
    assert minted["pairing_url"] == f"svc-relay://pair?payload={bare}"
    assert (minted["host"], minted["port"], minted["tls"]) == ("192.0.2.10", 8642, False)
    assert (minted["relay_url"], minted["expires_at"]) == ("ws://192.0.2.10:8767", 1_800_000_600)
    assert isinstance(minted["expires_at"], int)
    assert book.websocket().auth(pairing_code=code)["type"] == "auth.ok"


@pytest.mark.parametrize("port", [1, "65535", 65_535])
def test_ports(port: object) -> None:
    assert mint({"port": port})["port"] == int(str(port))


def test_empty_and_null_members_count_as_absent() -> None:
    assert mint({}) == mint(None)
    assert mint({"dashboardUrl": "http://d.example/"})["dashboard_url"] == "http://d.example"
    nulls = dict.fromkeys(("host", "port", "tls", "api_key", "dashboard_url", "ttl_seconds", "grants", "endpoints"))
    assert mint(nulls) == mint()


def test_everything_may_be_given() -> None:
    endpoints = [{"role": "mesh", "priority": 0, "api": {"host": "box.example", "port": 8642}}]
    terms = {"ttl_seconds": 604_800, "grants": {"bridge": 3600, "tui": 0}, "transport_hint": "wss"}
    body = {"host": " box.example ", "port": "9000", "tls": True, "api_key": "given", "endpoints": endpoints}
    body |= {"dashboard_url": " http://box.example:9119// ", **terms, "ttl_seconds": 604_800.0}
    book = RelayHarness(CONFIG)
    minted = mint(body, book)
    read = payload(minted)
    read.pop("sig")
    head = {"svc": 3, "hermes": 3, "host": "box.example", "port": 9000, "key": "given", "tls": True}
    assert read == {
        **head,
        "relay": {"url": "ws://192.0.2.10:8767", "code": minted["code"], **terms},
        "endpoints": endpoints,
        "dashboard_url": "http://box.example:9119",
    }
    assert '"ttl_seconds":604800,' in minted["qr_payload"]  # an integer: clients fail on 604800.0
    assert (minted["dashboard_url"], minted["endpoints"]) == ("http://box.example:9119", endpoints)
    assert book.websocket().auth(pairing_code=minted["code"])["payload"]["transport_hint"] == "wss"


def test_invites_of_other_configurations() -> None:
    minted = mint(None, RelayHarness(config(webapi_url="https://api.example")))
    assert (minted["host"], minted["port"], minted["tls"]) == ("api.example", 443, True)
    book = RelayHarness(config(host="198.51.100.7", ssl_cert="c", ssl_key="k"))
    minted = mint({"relay_url": "ws://evil.example", "relay": {"url": "ws://evil.example"}}, book)
    assert minted["relay_url"] == payload(minted)["relay"]["url"] == "wss://198.51.100.7:8767"
    book = RelayHarness(CONFIG)
    book.refuse = (Compute,)
    assert mint(None, book)["host"] == "127.0.0.1"
    minted = mint(None, RelayHarness(config(brand=HERMES)))
    assert minted["qr_payload"].startswith('{"svc":1,"hermes":1,"host":')
    assert minted["pairing_url"].startswith("hermes-relay://pair?payload=")
    assert verify_payload(payload(minted), SECRET)
    book = RelayHarness(CONFIG)
    book.refuse = (EnsureSecret,)
    assert "sig" not in payload(mint(None, book))
    assert book.events(Level.WARNING) == ["QR payload not signed"]


def candidate(role: str, host: str) -> dict[str, object]:
    return {"role": role, "api": {"host": host, "port": 443, "tls": True}, "relay": {"url": f"wss://{host}/relay"}}


@pytest.mark.parametrize(
    ("roles", "first"),
    [(["public"], "public.example"), (["public", "LAN"], "lan.example"), (["mesh", "public"], "mesh.example")],
)
def test_clients_without_candidates_get_the_route_of_the_local_network_or_first(roles: list[str], first: str) -> None:
    minted = mint({"endpoints": [candidate(role, f"{role.lower()}.example") for role in roles]})
    found = payload(minted)
    assert (minted["host"], minted["port"], minted["tls"]) == (first, 443, True)
    assert (found["host"], found["relay"]["url"], minted["relay_url"]) == (first, *[f"wss://{first}/relay"] * 2)


EXTRA = b"platforms: {api_server: {extra: {key: from-extra}, api_key: from-api-key}}"
OWN = b"platforms: {api_server: {extra: {key: ' '}, api_key: from-api-key}}"
DOT_ENV = b"# API_SERVER_KEY=comment\nOTHER=1\nAPI_SERVER_KEY=\nexport API_SERVER_KEY = 'from-env-file'\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({CONFIG_PATH: EXTRA, f"{HOME}/.env": DOT_ENV}, "from-env-file"),
        ({CONFIG_PATH: EXTRA, f"{HOME}/.env": b"OTHER=1"}, "from-extra"),
        ({CONFIG_PATH: OWN}, "from-api-key"),
        ({CONFIG_PATH: b"platforms: {api_server: []}", f"{HOME}/.env": b"OTHER=1"}, "from-environment"),
        ({}, "from-environment"),
    ],
)
def test_the_key_comes_from_the_host(files: dict[str, bytes], expected: str) -> None:
    book = RelayHarness(config(api_key="from-environment"), files=files)
    assert payload(mint(None, book))["key"] == expected
    book = RelayHarness(config(api_key="from-environment", key_in_environment=True), files=files)
    assert payload(mint(None, book))["key"] == "from-environment"  # as the server itself reads it


@pytest.mark.parametrize(("given", "expected"), [("given", "given"), ("", ""), (None, "")])
def test_an_explicit_key_beats_the_chain(given: object, expected: str) -> None:
    book = RelayHarness(config(api_key="from-environment"), files={CONFIG_PATH: EXTRA})
    assert payload(mint({"api_key": given}, book))["key"] == expected
