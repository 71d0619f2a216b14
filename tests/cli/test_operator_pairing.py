import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.basics.brand import HERMES
from svc_proto.cli.operator_pairing import LOCAL_SECRET_NEEDED, NewInvite, PairingRequest, create_invite
from svc_proto.cli.pairing_candidates import CandidateMode
from svc_proto.cli.pairing_routes import HERE_ALONE
from svc_proto.commands import EnsureSecret, Exit
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.machines.pairing_payload import parse_invite, verify_payload
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from tests.cli.harness import REFUSED, OneShotHarness, UpstreamRequest, as_json

CONFIG = RelayConfig(home="/h", config_path="/h/config.yaml", api_key="k3y")
ORDER = PairingRequest(config=CONFIG)
TAILSCALE = "/bin/tailscale"
MESH = {f"{TAILSCALE} status --json": b'{"Self": {"TailscaleIPs": ["100.64.0.7"]}}'}


def relay(asked: UpstreamRequest) -> tuple[int, bytes]:
    return as_json({"status": "ok"} if asked.path == "/health" else {"ok": True})


def world(order: PairingRequest, **more: Any) -> OneShotHarness[NewInvite]:
    return OneShotHarness(lambda engine: create_invite(engine, order), **{"http": relay, **more})


def meshed(order: PairingRequest) -> OneShotHarness[NewInvite]:
    return world(order, compute={"which": lambda name: TAILSCALE}, programs=MESH)


def payload(invite: NewInvite) -> dict[str, Any]:
    return parse_invite(invite.pairing_url)


def test_a_plain_invite() -> None:
    there = world(evolve(ORDER, meta=PairingMeta(ttl_seconds=60.0)))
    invite = there.run()
    assert [asked.path for asked in there.asked] == ["/health", "/pairing/register"]
    body = {"code": invite.code, "ttl_seconds": 60, "carries_key": True, "own_key": True}
    assert there.asked[1].json == body
    assert not invite.own_key
    found = payload(invite)
    assert json.loads(invite.qr_payload) == found
    api = {"svc": 3, "host": "192.0.2.10", "port": 8642, "key": "k3y", "tls": False}
    assert found.items() >= api.items()
    assert found["relay"] == {"url": "ws://192.0.2.10:8767", "code": invite.code, "ttl_seconds": 60}
    assert [each["role"] for each in found["endpoints"]] == ["lan"]
    assert verify_payload(found, bytes(range(32)))
    assert invite.expires_at == int(there.now.wall + 600)
    assert invite.notes == ()
    assert "k3y" not in repr(invite)
    assert str(invite.code) not in repr(invite)


@pytest.mark.parametrize("main", ["k3y", ""])
def test_relay_with_pairing_keys(main: str) -> None:
    def giving(asked: UpstreamRequest) -> tuple[int, bytes]:
        return as_json({"ok": True, "api_key": "sk-own"}) if asked.path == "/pairing/register" else relay(asked)

    there = world(evolve(ORDER, config=evolve(CONFIG, api_key=main)), http=giving)
    invite = there.run()
    assert (invite.key, invite.own_key, payload(invite)["key"]) == ("sk-own", True, "sk-own")
    assert there.asked[1].json == {"code": invite.code, "own_key": True, **({"carries_key": True} if main else {})}
    assert "sk-own" not in repr(invite)


def test_other_server_instead_of_the_relay() -> None:
    reason = "the relay at http://127.0.0.1:8767 does not answer in JSON: is it really one?"
    assert world(ORDER, http=(200, b"<html>")).fails().reason == reason


def test_api_with_an_unknown_key() -> None:
    unkeyed = evolve(ORDER, config=evolve(CONFIG, api_key=""))
    assert world(unkeyed).run().key == ""
    order = evolve(unkeyed, keyed=True)
    assert world(order).fails().reason == (
        "the API server on this host asks for a key that stands in no file of its home: "
        "set API_SERVER_KEY for this command, as it was set for the server"
    )
    assert world(evolve(order, meta=PairingMeta(grants={"chat": None}))).run().key == ""


def test_without_chat_the_qr_holds_no_key() -> None:
    there = world(evolve(ORDER, meta=PairingMeta(grants={"chat": None, "bridge": 60.0})))
    invite = there.run()
    assert invite.key == payload(invite)["key"] == ""
    assert payload(invite)["relay"]["grants"] == {"bridge": 60}
    assert there.asked[1].json == {"code": invite.code, "grants": {"chat": False, "bridge": 60}}


def test_every_route() -> None:
    order = evolve(ORDER, public_url="https://home.example", prefer="public", dashboard_url="http://d")
    there = meshed(order)
    found = payload(there.run())
    doing = [tell.fields["text"] for tell in there.told if tell.event == "doing"]
    assert doing == ["looking for ways to this host", "asking the relay at http://127.0.0.1:8767"]
    assert [(each["role"], each["priority"]) for each in found["endpoints"]] == [("public", 0), ("lan", 1), ("mesh", 2)]
    assert (found["host"], found["dashboard_url"]) == ("192.0.2.10", "http://d")


@pytest.mark.parametrize(
    ("mode", "told"), [(CandidateMode.AUTO, True), (CandidateMode.PUBLIC, True), (CandidateMode.LAN, False)]
)
def test_public_candidate_is_registered_at_the_relay(mode: CandidateMode, told: bool) -> None:
    there = meshed(evolve(ORDER, mode=mode, public_url="https://home.example"))
    roles = [each["role"] for each in payload(there.run())["endpoints"]]
    assert mode is CandidateMode.AUTO or roles == [mode.value]
    body = json.loads(there.asked[1].body)
    assert [each["role"] for each in body.get("endpoints", [])] == ["public"] * told


def test_the_other_brand() -> None:
    config = evolve(CONFIG, brand=HERMES)
    found = payload(meshed(evolve(ORDER, config=config, mode=CandidateMode.MESH)).run())
    assert found["hermes"] == 3
    assert found["endpoints"][0]["role"] == "tailscale"


def test_unreachable_relay() -> None:
    order = evolve(ORDER, mode=CandidateMode.PUBLIC, public_url="https://home.example")
    there = world(order, http=lambda asked: REFUSED if ":8767/" in asked.url else relay(asked))
    invite = there.run()
    assert [asked.url for asked in there.asked] == ["http://127.0.0.1:8767/health", "http://127.0.0.1:8642/health"]
    assert (invite.code, invite.expires_at, invite.relay_url) == (None, None, None)
    (note,) = invite.notes
    assert "cannot be reached (connection refused)" in note
    found = payload(invite)
    assert "relay" not in found
    assert "endpoints" not in found
    assert (found["host"], found["port"], found["tls"]) == ("home.example", 443, True)


@pytest.mark.parametrize(
    ("inside", "tls", "url"), [(None, True, "https://127.0.0.1:8642"), ("http://x:1", False, "http://x:1")]
)
def test_nothing_runs(inside: str | None, tls: bool, url: str) -> None:
    there = world(evolve(ORDER, config=evolve(CONFIG, webapi_inside=inside, api_tls=tls)), http=REFUSED)
    assert there.fails().reason == "nothing runs on /h: neither relay nor API server answers: svc up"
    assert there.asked[-1].url == f"{url}/health"


def test_invite_without_relay() -> None:
    there = world(evolve(ORDER, with_relay=False, host="api.example", port=1, prefer="mesh"))
    invite = there.run()
    assert there.asked == []
    assert (invite.notes, invite.warnings) == ((), ("--prefer 'mesh' changes nothing: the routes are lan",))
    assert invite.api.url == "http://api.example:1"


def test_a_relay_with_tls_on_one_address() -> None:
    config = evolve(CONFIG, host="198.51.100.7", ssl_cert="c", ssl_key="k")
    assert world(evolve(ORDER, config=config)).run().relay_url == "wss://198.51.100.7:8767"


def test_a_relay_for_this_host_alone() -> None:
    """An invite notes that the relay listens on loopback, unless it has a public URL or is made without the relay."""
    order = evolve(ORDER, config=evolve(CONFIG, host="127.0.0.1"))
    invite = world(order).run()
    assert (invite.relay_url, invite.notes) == ("ws://127.0.0.1:8767", (HERE_ALONE,))
    assert world(evolve(order, public_url="https://home.example/relay")).run().notes == (LOCAL_SECRET_NEEDED,)
    assert world(evolve(order, with_relay=False)).run().notes == ()


@pytest.mark.parametrize(
    ("mode", "trust", "notes"),
    [
        (CandidateMode.AUTO, None, (LOCAL_SECRET_NEEDED,)),
        (CandidateMode.LAN, None, ()),
        (CandidateMode.AUTO, LocalTrustPolicy.ADDRESS, ()),
        (CandidateMode.AUTO, LocalTrustPolicy.SECRET, ()),
    ],
)
def test_a_public_route_that_makes_the_relay_require_its_secret_is_noted(
    mode: CandidateMode, trust: LocalTrustPolicy | None, notes: tuple[str, ...]
) -> None:
    config = evolve(CONFIG, local_trust=trust)
    order = evolve(ORDER, config=config, mode=mode, public_url="https://home.example")
    assert world(order).run().notes == notes


def test_an_unsigned_invite() -> None:
    there = world(ORDER)
    there.refuse = (EnsureSecret,)
    invite = there.run()
    assert invite.warnings == ("the QR is not signed: the signing key cannot be used (no space left on the device)",)
    assert "sig" not in payload(invite)


@pytest.mark.parametrize(
    ("mode", "code", "reason"),
    [
        (CandidateMode.PUBLIC, 2, "--mode public needs --public-url https://… or SVC_PUBLIC_URL"),
        (CandidateMode.MESH, 1, "--mode mesh finds no mesh VPN: start tailscale on this host, or use --mode lan"),
    ],
)
def test_impossible_modes(mode: CandidateMode, code: int, reason: str) -> None:
    assert world(evolve(ORDER, mode=mode)).fails() == Exit(code, reason)


@pytest.mark.parametrize(("grants", "url"), [(None, "http://192.0.2.10:9119"), ({"chat": None}, None)])
def test_the_dashboard_is_named_unless_chat_is_withheld(
    grants: dict[str, float | None] | None, url: str | None
) -> None:
    order = evolve(ORDER, config=evolve(CONFIG, dashboard=("0.0.0.0", 9119)), meta=PairingMeta(grants=grants))
    found = payload(world(order).run())
    assert found.get("dashboard_url") == url
    assert [each.get("dashboard") for each in found["endpoints"]] == [url and {"url": url}]
