import pytest
from attrs import evolve

from svc_proto.cli import operator_output
from svc_proto.cli.key_rotation import KeyRotationResult
from svc_proto.cli.operator_output import invite_json, invite_lines, meta_lines, rotated_lines
from svc_proto.cli.operator_pairing import NewInvite
from svc_proto.cli.pairing_candidates import ApiCandidate, HostCandidate
from svc_proto.cli.pairing_routes import LeftOut
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.schema.json_object import JsonObject

API = ApiCandidate("192.0.2.10", 8642, False)
INVITE = NewInvite(
    api=API,
    key="abcdefghijklm",
    own_key=False,
    code="Q7M2ZK",
    expires_at=1_800_000_600,
    relay_url="ws://192.0.2.10:8767",
    meta=PairingMeta(ttl_seconds=604_800.0, grants={"terminal": 0.0, "bridge": 3600.0}),
    max_ttl=None,
    routes=(HostCandidate("lan", API, "ws://192.0.2.10:8767"),),
    qr_payload="{}",
    pairing_url="svc-relay://pair?payload=e30",
    notes=("a note",),
)


def test_addresses_that_are_left_out_have_their_reasons() -> None:
    invite = evolve(INVITE, left_out=(LeftOut("10.5.0.2 (tun0)", "belongs to a VPN"),))
    assert invite_json(invite)["left_out"] == [{"what": "10.5.0.2 (tun0)", "why": "belongs to a VPN"}]
    lines = invite_lines(invite)
    assert lines[lines.index("Not in the invite") + 1] == "  10.5.0.2 (tun0): belongs to a VPN"


@pytest.mark.parametrize(
    ("key", "shown"), [("", ""), ("12345678", "********"), ("123456789", "1234…789 (9 characters)")]
)
def test_masks(key: str, shown: str) -> None:
    assert operator_output.mask(key) == shown


def test_secrets_can_be_hidden() -> None:
    shown, hidden = "\n".join(invite_lines(INVITE)), "\n".join(invite_lines(INVITE, hidden=True))
    for secret in (INVITE.key, str(INVITE.code), INVITE.pairing_url):
        assert secret in shown
        assert secret not in hidden
    assert "  Code      not shown\n" in hidden
    why = "as this is no terminal: --show shows it, with code and key; --json is for programs"
    assert hidden.endswith(f"\n  not shown, {why}")
    assert "1 hour: bridge" in hidden


def test_the_order_of_the_blocks() -> None:
    assert invite_lines(INVITE) == [
        "API server",
        "  URL       http://192.0.2.10:8642",
        "  Key       abcd…klm (13 characters)",
        "  To type   abcdefghijklm",
        "  Access    with the key only",
        "            the main key: the QR holds it, and it outlives the session; svc key rotate makes a new one",
        "",
        "Relay",
        "  URL       ws://192.0.2.10:8767",
        "  Code      Q7M2ZK",
        "            works once, for 10 minutes",
        "  Session   7 days",
        "  Grants    7 days: chat, terminal, tui, voice:config, voice:stt, voice:tts, voice:realtime",
        "            1 hour: bridge",
        "  Rights    manage, files, notifications",
        "",
        "Routes, best first",
        "  lan       http://192.0.2.10:8642  ws://192.0.2.10:8767",
        "",
        "Note: a note",
        "",
        "Invite URL (holds credentials)",
        "  svc-relay://pair?payload=e30",
    ]


def test_kind_of_key() -> None:
    own = evolve(INVITE, own_key=True)
    kind = "this pairing's own: it ends with the session, and with the code if no device pairs"
    assert f"            {kind}" in invite_lines(own)
    assert [line for line in invite_lines(own) if "main key" in line] == []
    assert invite_json(own)["api"] == {"url": "http://192.0.2.10:8642", "key": "abcdefghijklm", "own_key": True}
    assert invite_json(INVITE)["api"] == {"url": "http://192.0.2.10:8642", "key": "abcdefghijklm", "own_key": False}


def test_without_a_relay_and_a_key() -> None:
    bare = evolve(INVITE, key="", code=None, relay_url=None, expires_at=None, notes=(), meta=PairingMeta())
    lines = invite_lines(bare)
    assert "  Key       none" in lines
    assert "Relay" not in lines
    assert invite_json(bare)["relay"] is None


def test_without_chat_there_is_no_key() -> None:
    lines = invite_lines(evolve(INVITE, key="", meta=PairingMeta(grants={"chat": None})))
    assert lines[:4] == ["API server", "  URL       http://192.0.2.10:8642", "  Key       withheld, as chat is", ""]


@pytest.mark.parametrize("in_environment", [False, True])
def test_a_new_key(in_environment: bool) -> None:
    told = KeyRotationResult(key="sk-abcdefghijkl", path="/h/.env", in_environment=in_environment, runs=False)
    lines = rotated_lines(told)
    assert lines[0] == "New API key in /h/.env: sk-a…jkl (15 characters)"
    assert any("API_SERVER_KEY is set in the environment" in line for line in lines) is in_environment
    assert "svc pair" in lines[2]
    assert "No API runs" in lines[1]
    assert rotated_lines(evolve(told, runs=True))[1].startswith("The API that runs has taken it")
    kept, what = rotated_lines(evolve(told, runs=True, kept="it answered 404"))[1:3]
    assert kept == "The API that runs keeps the old key: it answered 404."
    assert what.startswith("Start the servers anew now")


def test_nothing_preset() -> None:
    assert meta_lines(PairingMeta(), None) == [
        "  Session   30 days, or what the phone asks for",
        "  Grants    30 days: chat, terminal, tui, voice:config, voice:stt, voice:tts, voice:realtime",
        "            7 days: bridge",
        "            unless the phone asks for others",
        "  Rights    manage, files, notifications",
    ]


def test_every_channel_has_its_lifetime() -> None:
    assert meta_lines(PairingMeta(ttl_seconds=90 * 86_400.0, grants={"bridge": 3600.0, "terminal": None}), None) == [
        "  Session   90 days",
        "  Grants    90 days: chat, voice:config, voice:stt, voice:tts, voice:realtime",
        "            1 hour: bridge",
        "            30 days: tui",
        "  Withheld  terminal",
        "  Rights    files, notifications",
    ]
    assert meta_lines(PairingMeta(ttl_seconds=0.0, grants={"bridge": 60.0, "tui": 0.0}), 30.0) == [
        "  Session   30 seconds",
        f"  Grants    30 seconds: {', '.join(CHANNELS)}",
        "  Rights    manage, files, notifications",
    ]
    assert meta_lines(PairingMeta(ttl_seconds=0.0, grants=dict.fromkeys(CHANNELS)), None) == [
        "  Session   never expires",
        "  Grants    none",
        f"  Withheld  {', '.join(CHANNELS)}",
        "  Rights    none",
    ]


def test_json() -> None:
    found = invite_json(INVITE)
    assert list(found) == ["api", "relay", "routes", "left_out", "qr_payload", "pairing_url", "notes"]
    relay = found["relay"]
    assert isinstance(relay, dict)
    assert relay["grants"] == {**dict.fromkeys(CHANNELS, 604_800.0), "bridge": 3600.0}
    assert relay["ttl_seconds"] == 604_800.0
    assert found["routes"] == [{"role": "lan", "api_url": API.url, "relay_url": "ws://192.0.2.10:8767"}]


def test_security_setting() -> None:
    assert operator_output.security_lines(False) == ["API keys over plain HTTP from other hosts: refused"]
    assert len(operator_output.security_lines(True)) == 2


@pytest.mark.parametrize(
    ("scope", "there", "shown"),
    [("bridge", True, "look and act (bridge)"), ("bridge:read", False, "look (bridge:read)")],
)
def test_consent_request_text(scope: str, there: bool, shown: str) -> None:
    asked = {"client_name": "\x1b[2JClaude", "address": "::1", "answer_goes_to": "a.example", "scope": scope}
    text = "\n".join(operator_output.agent_lines(JsonObject(asked, answer_stays_there=there)))
    assert shown in text
    assert "\x1b" not in text
    assert ("computer that asks" in text) == there


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        ({"local_trust": "user"}, ["Programs of this host: those of the relay's user and of root"]),
        ({"local_trust": "address", "public_route": False}, ["Programs of this host: all"]),
    ],
)
def test_local_trust_in_words(state: dict[str, object], lines: list[str]) -> None:
    assert operator_output.public_route_lines(JsonObject(state)) == lines
    routed = operator_output.public_route_lines(JsonObject({**state, "public_route": True}))
    assert routed[1].endswith("svc relay public-route off")
