"""Health, info, the runtime security settings and the bridge's reports (wire core 8, wire bridge 4)."""

import pytest
from attrs import evolve

from svc_proto.commands import Level
from svc_proto.relay.change_notifier import DEVICES
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from svc_proto.version import VERSION
from tests.relay.harness import REMOTE, RelayHarness, paired_relay

DEVICE = {"name": "Pixel 7a", "battery_percent": 64}
STATUS = {"device": DEVICE, "safety": {"blocklist_count": 28}, "ts": 1}


def test_the_configured_version_is_shown_everywhere() -> None:
    version = f"{VERSION}+g2009ac61abcd"
    book = RelayHarness(RelayConfig(version=version))
    health, info = book.request("GET", "/health").json, book.request("GET", "/relay/info").json
    assert (health["version"], info["version"], info["plugin_version"]) == (version, version, version)
    assert f'svc_build{{version="{version}"}} 1.0' in book.request("GET", "/metrics").body.decode()
    assert book.request("GET", "/openapi.json").json["info"]["version"] == version
    book.register()
    assert book.websocket().auth(pairing_code="Q7M2ZK")["payload"]["server_version"] == version


def test_health_and_its_methods(book: RelayHarness) -> None:
    answer = book.request("GET", "/health", peer=REMOTE, host=b"relay.example")
    assert answer.body == b'{"status":"ok","version":"%s","clients":0,"sessions":0}' % VERSION.encode()
    paired = book.pair()
    book.websocket()  # not authenticated
    assert book.request("GET", "/health").json == {"status": "ok", "version": VERSION, "clients": 1, "sessions": 1}
    paired.phone.vanish()
    assert book.request("GET", "/health").json == {"status": "ok", "version": VERSION, "clients": 0, "sessions": 1}
    answer = book.request("HEAD", "/health")
    assert (answer.status, answer.body) == (200, b"")
    answer = book.request("POST", "/health")
    assert (answer.status, answer.json["ok"], answer.json["code"]) == (405, False, "method_not_allowed")
    assert answer.headers.get(b"allow") == b"GET,HEAD"


def test_info_and_the_security_settings(book: RelayHarness) -> None:
    book.after(90.75)
    paired = book.pair()
    book.call("GET", "/ping", token=paired.token)
    info = book.request("GET", "/relay/info").json
    capabilities = ["bridge", "media", "notifications", "profiles", "proactive", "relay_voice", "terminal"]
    assert (info["capabilities"], info["protocol_version"], info["health"]) == (capabilities, 1, "ok")
    assert info["profiles"] == [{"name": "default", "relay_state": "enabled"}]
    assert (info["session_count"], info["paired_device_count"], info["pending_commands"]) == (1, 1, 1)
    assert (info["uptime_seconds"], info["media_entry_count"], info["public_route"]) == (90, 0, False)
    config = RelayConfig(allow_insecure_api_bearer=True, trusted_proxies=("192.0.2.9",))
    book = RelayHarness(evolve(config, local_trust=LocalTrustPolicy.ADDRESS))
    expected = {"ok": True, "scope": "runtime", "allow_insecure_api_bearer": True, "trust_proxy_headers": True}
    expected |= {"local_trust": "address", "public_route": False}
    assert book.request("GET", "/relay/security").json == expected
    expected["allow_insecure_api_bearer"] = False
    body = {"allow_insecure_api_bearer": False, "trust_proxy_headers": False, "other": 1}
    answer = book.request("PATCH", "/relay/security", body)
    assert (answer.status, answer.json) == (200, expected)
    assert book.request("GET", "/relay/security").json == expected
    assert "security changed" in book.events(Level.INFO)


def test_phones_are_connected_from_their_sign_in_to_the_end_of_their_grant(book: RelayHarness) -> None:
    paired = book.pair(device_id="d-1", device_name="Kitchen")
    report = book.request("GET", "/bridge/status").json
    assert (report["device"], report["bridge"], report["safety"]) == ({"device_id": "d-1", "name": "Kitchen"}, {}, {})
    assert (report["phone_connected"], report["last_seen_seconds_ago"]) == (True, None)
    assert report["session_token_prefix"] == paired.prefix
    book, paired = paired_relay(operator={"grants": {"bridge": 10}})
    book.after(10)
    assert book.request("GET", "/bridge/status").status == 503
    book.reconnect(paired.token)
    assert book.request("GET", "/bridge/devices").json["count"] == 0
    book, paired = paired_relay(operator={"grants": {"bridge": 60}}, device_id="d-1")
    paired.phone.send("bridge", "bridge.status", STATUS)
    book.after(60)
    assert book.request("POST", "/bridge/select-active", {"device": "d-1"}).status == 404
    assert book.request("GET", "/bridge/status").json["phone_connected"] is False
    assert book.request("GET", "/bridge/devices").json["devices"] == []


@pytest.mark.parametrize(("surface", "at_once"), [("android", True), ("quest", True), ("desktop", False), ("", False)])
def test_client_surface_decides_whether_a_phone_is_registered(book: RelayHarness, surface: str, at_once: bool) -> None:
    phone = book.pair(client_surface=surface).phone
    assert book.request("GET", "/bridge/status").status == (200 if at_once else 503)
    phone.send("bridge", "bridge.status", STATUS)
    assert book.request("GET", "/bridge/status").status == 200


def test_devices_and_select_active(book: RelayHarness) -> None:
    book.pair(device_id="d-1")
    book.pair(device_id="d-2", device_name="Hall")
    report = book.request("GET", "/bridge/devices").json
    changes: list[str] = []
    book.relay.changes.subscribe(DEVICES, lambda: changes.append("devices"))
    assert (report["active_device_id"], report["most_recent_device_id"], report["count"]) == ("d-1", "d-2", 2)
    answer = book.request("POST", "/bridge/select-active", {"device": "hall"}).json
    assert (answer["ok"], answer["active_device_id"], answer["alias_used"]) == (True, "d-2", "hall")
    assert book.request("GET", "/bridge/devices").json["active_device_id"] == "d-2"
    assert book.request("POST", "/bridge/select-active", {"device": "absent"}).status == 404
    assert changes == ["devices"]
    for query, status in (("device=d-1", 200), ("deviceId=hall", 200), ("device=absent", 404), ("device=phone", 409)):
        assert book.request("GET", f"/bridge/status?{query}").status == status


def test_activity_is_a_ring_of_records(book: RelayHarness) -> None:
    paired = book.pair(device_id="d-1", device_name="Kitchen")
    for n in range(102):
        book.call("GET", f"/ping?n={n}", token=paired.token)
    records = book.activity()
    assert [record["params"]["n"] for record in records] == [str(n) for n in range(101, 1, -1)]
    assert [records[0][name] for name in ("device_id", "device_name", "asked_by")] == ["d-1", "Kitchen", "Kitchen"]
    assert len(book.request("GET", "/bridge/activity?limit=2").json["activity"]) == 2
