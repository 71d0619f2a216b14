"""Tests of the shapes of `--json` output, which scripts read: they change on purpose only."""

import json
from typing import Any

import pytest
import yaml

from clients.commands.cli import json_text
from tests.clients.commands.command_process import CommandHome, paired
from tests.servers.program_process import call, sign_in, websocket

# Command line: the members of its output in their order, with the names of their types.
SHAPES: dict[str, Any] = yaml.safe_load("""
svc pair --json:
  api: {url: str, key: str, own_key: bool}
  relay:
    {url: str, code: str, expires_at: int, ttl_seconds: NoneType, grants: &spans {chat: int, terminal: int, bridge: int,
    tui: int, voice:config: int, voice:stt: int, voice:tts: int, voice:realtime: int}}
  routes: [{role: str, api_url: str, relay_url: str}]
  left_out: [{what: str, why: str}] # addresses of the host, of a relay on loopback
  qr_payload: str
  pairing_url: str
  notes: [str] # a relay that listens on this host only
  png: NoneType
svc pair --register-code AAAAA1 --json:
  {ok: bool, code: str, relay_url: str, ttl_seconds: NoneType, grants: *spans}
svc relay insecure-api-key --json:
  {allow_insecure_api_bearer: bool, local_trust: str, ok: bool, public_route: bool, scope: str,
  trust_proxy_headers: bool}
svc-relay pair Q7M2ZK --json:
  {ok: bool, url: str, token_prefix: str, expires_at: float, grants: &grants {chat: float, terminal: float,
  bridge: float, tui: float, voice:config: float, voice:stt: float, voice:tts: float, voice:realtime: float},
  server_version: str, endpoint_role: NoneType, transport_hint: str, cert_pin_sha256: NoneType}
svc-relay status --json:
  URL:
    {token: str, serverVersion: str, pairedAt: int, certPinSha256: NoneType, grants: *grants, ttlExpiresAt: float,
    endpointRole: NoneType, preferSecureRoutes: bool, toolsConsented: bool, computerUseConsented: bool}
svc-relay devices --json:
  [{token_prefix: str, device_name: str, device_id: str, created_at: float, first_seen: float, last_seen: float,
  expires_at: float, grants: *grants, transport_hint: str, client_surface: str, device_form_factor: str,
  device_model: str, device_platform: str, rights: [str], is_current: bool, online: bool}]
svc-relay devices extend PREFIX --json: {ok: bool, token_prefix: str, expires_at: float, grants: *grants}
svc-relay sessions --json: []
svc-relay notifications --json: [{title: str}]
svc-relay media get FILE -o OUT --json: {ok: bool, file: str, size: int, content_type: str}
svc-relay doctor --json: {ok: bool, findings: [{verdict: str, subject: str, text: str, remedy: NoneType}]}
# the last ones, since they end the session of the others
svc-relay devices revoke PREFIX --json: {ok: bool, revoked: str, revoked_self: bool}
svc pair --revoke OTHER --json: {ok: bool, revoked: str, revoked_self: bool}
""")


def shape(value: object) -> object:
    """Return the shape of a JSON value: members by name, the first item of a list, type names of the rest."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    return type(value).__name__


def test_shapes(linked: CommandHome) -> None:
    token = paired(linked)
    file, out = linked.home / "svc" / "workspace" / "a.txt", linked.home / "b.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text("hello")
    for code in ("Q7M2ZK", "AAAAA2"):
        call(linked.port, "POST", "/pairing/register", {"code": code})
    other = sign_in(linked.port, pairing_code="AAAAA2")["session_token"]
    with websocket(linked.port) as phone:
        phone.sign_in(session_token=other)
        phone.send_envelope("notifications", "notification.posted", {"title": "x"})
        phone.pong()
    names = {"PREFIX": token[:8], "OTHER": other[:8], "FILE": str(file), "OUT": str(out)}
    for command, expected in SHAPES.items():
        program, *words = command.split()
        elsewhere = {"SVC_HOME": str(linked.home / "elsewhere")} if "Q7M2ZK" in words else {}
        env = {"SVC_RELAY_URL": linked.url, **elsewhere}
        done = linked.run(program, *(names.get(word, word) for word in words), env=env)
        assert (done.code, done.err) == (0, ""), command
        found = shape({"URL": done.json[linked.url]} if linked.url in done.json else done.json)
        assert found == expected, command
        if isinstance(found, dict) and isinstance(expected, dict):
            assert list(found) == list(expected), command


@pytest.mark.parametrize("indent", [None, 2])
def test_json_output_has_no_control_characters(indent: int | None) -> None:
    value = {"é\u009b31m": ["\u009d0;title\u009c\x7f", "\u202eevil\u2066", "\U000e0041", "日本 \t\n", 1.5, None]}
    text = json_text(value, indent=indent)
    assert json.loads(text) == value
    assert "日本" in text
    assert all(sign.isprintable() or sign == "\n" for sign in text)
